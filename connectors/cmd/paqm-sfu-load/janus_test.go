// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"testing"
	"time"
)

func layer(name string, bytes int) *movie {
	return &movie{rid: name, pictures: [][]byte{make([]byte, bytes)}, interval: time.Second / 10}
}

func TestFitting(t *testing.T) {
	layers := []*movie{layer("a", 1000), layer("b", 2000), layer("c", 4000)}
	for bps, want := range map[float64]string{0: "a", 79e3: "a", 159e3: "a", 160e3: "b", 319e3: "b", 1e6: "c"} {
		if got := fitting(layers, bps); got.rid != want {
			t.Errorf("%.0f bit/s: %s, expected %s", bps, got.rid, want)
		}
	}
}

func TestHasKey(t *testing.T) {
	key := []byte{0, 0, 0, 1, 0x67, 1, 2, 0, 0, 1, 0x68, 3, 0, 0, 1, 0x65, 4}
	for text, want := range map[string]bool{
		string(key): true, string(key[1:]): true, string(key[7:]): false, "\x00\x00\x01": false, "": false,
		"\x00\x00\x00\x01\x41\x9a": false,
	} {
		if hasKey([]byte(text)) != want {
			t.Errorf("%x: expected %t", text, want)
		}
	}
}

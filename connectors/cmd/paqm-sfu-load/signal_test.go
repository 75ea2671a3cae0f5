// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import "testing"

func TestParts(t *testing.T) {
	message := putBytes(putNumber(nil, sendPing, 300), sendOffer, putBytes(nil, sdpText, []byte("v=0")))
	found, err := parts(message)
	if err != nil || len(found) != 2 || found[0].number != sendPing || found[0].value != 300 {
		t.Fatal(found, err)
	}
	inner, err := parts(found[1].bytes)
	if err != nil || len(inner) != 1 || string(inner[0].bytes) != "v=0" {
		t.Fatal(inner, err)
	}
	for n := 1; n < len(message); n++ {
		if got, err := parts(message[:n]); err == nil && len(got) == 2 {
			t.Errorf("%d of %d bytes are taken for the whole", n, len(message))
		}
	}
}

// FuzzParts: what LiveKit writes is taken or refused.
func FuzzParts(f *testing.F) {
	f.Add(putBytes(putNumber(nil, sendPing, 300), sendOffer, []byte("v=0")))
	f.Fuzz(func(t *testing.T, message []byte) {
		found, err := parts(message)
		if err != nil {
			return
		}
		sum := 0
		for _, one := range found {
			sum += len(one.bytes)
		}
		if sum > len(message) {
			t.Fatal("more than there was")
		}
	})
}

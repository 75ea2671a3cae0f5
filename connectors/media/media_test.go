// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package media

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"
)

func file(pictures ...string) []byte {
	b := make([]byte, ivfHeader)
	copy(b, "DKIF")
	copy(b[8:], "H264")
	binary.LittleEndian.PutUint32(b[16:], 24)
	binary.LittleEndian.PutUint32(b[20:], 1)
	for n, one := range pictures {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(one)))
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
		b = append(b, one...)
	}
	return b
}

func TestIVF(t *testing.T) {
	pictures, interval, err := ReadIVF(file("first", "2nd"))
	if err != nil || len(pictures) != 2 || string(pictures[1]) != "2nd" || interval != time.Second/24 {
		t.Fatal(pictures, interval, err)
	}
	whole := file("first", "2nd")
	for _, bad := range [][]byte{nil, file(), file(""), whole[:len(whole)-1], whole[:40],
		bytes.Replace(whole, []byte("H264"), []byte("VP80"), 1)} {
		if _, _, err := ReadIVF(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestBeginsKey(t *testing.T) {
	for payload, want := range map[string]bool{
		"\x67\x42\x00\x1f":                 true,  // SPS by itself
		"\x78\x00\x04\x67\x42":             true,  // with others in one packet
		"\x7c\x87\x00\x00":                 true,  // in fragments, the first
		"\x7c\x07\x00\x00":                 false, // a later one
		"\x65\x88\x84\x00":                 false, // a slice: the parameters came before
		"\x41\x9a\x00\x00":                 false,
		"\x78\x00\x04\x68\x42\x00\x00\x67": false,
		"\x67":                             false,
		"":                                 false,
	} {
		if BeginsKey([]byte(payload)) != want {
			t.Errorf("%x: expected %v", payload, want)
		}
	}
}

// FuzzIVF: pictures lie within the file, one behind the other, and none is empty.
func FuzzIVF(f *testing.F) {
	f.Add(file("first", "2nd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		pictures, interval, err := ReadIVF(data)
		if err != nil {
			return
		}
		size := ivfHeader
		for _, one := range pictures {
			if len(one) == 0 {
				t.Fatal("an empty picture")
			}
			size += ivfFrame + len(one)
		}
		if size != len(data) || interval < 0 {
			t.Fatalf("%d bytes of %d, interval %v", size, len(data), interval)
		}
	})
}

// FuzzBeginsKey: no payload is read beyond its end.
func FuzzBeginsKey(f *testing.F) {
	f.Add([]byte("\x78\x00\x04\x67\x42"))
	f.Fuzz(func(_ *testing.T, p []byte) { BeginsKey(p) })
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// Package media has what servers and loads need to know of H.264.
package media

import (
	"encoding/binary"
	"errors"
	"time"
)

const (
	kindParameters, kindAggregate, kindFragment = 7, 24, 28 // RFC 6184: SPS, STAP-A, FU-A

	ivfHeader, ivfFrame = 32, 12
)

// BeginsKey says whether a payload of H.264 (RFC 6184) begins a key picture: with its parameter set.
func BeginsKey(p []byte) bool {
	if len(p) < 4 {
		return false
	}
	switch p[0] & 0x1f {
	case kindParameters:
		return true
	case kindAggregate:
		return p[3]&0x1f == kindParameters
	case kindFragment:
		return p[1]&0x80 != 0 && p[1]&0x1f == kindParameters
	}
	return false
}

// ReadIVF takes a file with H.264 in it apart: header, then size, time and bytes of each picture. The
// pictures are parts of data.
func ReadIVF(data []byte) (pictures [][]byte, interval time.Duration, err error) {
	if len(data) < ivfHeader || string(data[:4]) != "DKIF" || string(data[8:12]) != "H264" {
		return nil, 0, errors.New("expected IVF with H264")
	}
	rate, scale := binary.LittleEndian.Uint32(data[16:]), binary.LittleEndian.Uint32(data[20:])
	if rate == 0 || scale == 0 {
		return nil, 0, errors.New("no frame rate")
	}
	for at := ivfHeader; at < len(data); {
		if at+ivfFrame > len(data) {
			return nil, 0, errors.New("it ends within a header")
		}
		size := int64(binary.LittleEndian.Uint32(data[at:]))
		at += ivfFrame
		if size == 0 || size > int64(len(data)-at) {
			return nil, 0, errors.New("a picture is empty, or the file ends within it")
		}
		pictures = append(pictures, data[at:at+int(size)])
		at += int(size)
	}
	if len(pictures) == 0 {
		return nil, 0, errors.New("no pictures")
	}
	return pictures, time.Duration(float64(time.Second) * float64(scale) / float64(rate)), nil
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// LiveKit's signals as far as a load needs them: the field numbers of its livekit_rtc.proto
// (SignalRequest, SignalResponse and what is in them), in the wire format of protocol buffers.

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"
)

const (
	// SignalRequest
	sendOffer, sendAnswer, sendTrack, sendLeave, sendPing = 1, 2, 4, 8, 14
	// SignalResponse
	gotAnswer, gotOffer, gotTrickle, gotLeave = 2, 3, 4, 8
	// SessionDescription
	sdpType, sdpText = 1, 2
	// TrickleRequest; its target 1 is the subscriber's transport
	trickleCandidate, trickleTarget = 1, 2
	// AddTrackRequest; type 1 is video, source 1 a camera
	trackID, trackName, trackType, trackWidth, trackHeight, trackSource, trackLayers = 1, 2, 3, 4, 5, 8, 9
	// VideoLayer
	layerQuality, layerWidth, layerHeight, layerBitrate = 1, 2, 3, 4

	kindVarint, kind64, kindBytes, kind32 = 0, 1, 2, 5
)

// part is one field of a message.
type part struct {
	number uint64
	value  uint64 // of a varint
	bytes  []byte // of all with a length; part of the message
}

var errSignal = errors.New("a signal ends within a field, or has a kind of field that nobody uses")

// parts takes a message apart.
func parts(message []byte) ([]part, error) {
	var found []part
	for len(message) > 0 {
		key, n := binary.Uvarint(message)
		if n <= 0 {
			return nil, errSignal
		}
		message = message[n:]
		one, size := part{number: key >> 3}, 0
		switch key & 7 {
		case kindVarint:
			if one.value, size = binary.Uvarint(message); size <= 0 {
				return nil, errSignal
			}
		case kindBytes:
			length, n := binary.Uvarint(message)
			if n <= 0 || length > uint64(len(message)-n) {
				return nil, errSignal
			}
			size = n + int(length)
			one.bytes = message[n:size]
		case kind64:
			size = 8
		case kind32:
			size = 4
		default:
			return nil, errSignal
		}
		if size > len(message) {
			return nil, errSignal
		}
		message = message[size:]
		found = append(found, one)
	}
	return found, nil
}

func putNumber(to []byte, field int, value uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(to, uint64(field)<<3|kindVarint), value)
}

func putBytes(to []byte, field int, value []byte) []byte {
	to = binary.AppendUvarint(to, uint64(field)<<3|kindBytes)
	return append(binary.AppendUvarint(to, uint64(len(value))), value...)
}

// token is what LiveKit lets a participant into a room by: a JSON Web Token (RFC 7519, HS256).
func token(key, secret, room, identity string, publishes bool, now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{
		"iss": key, "sub": identity, "nbf": now.Add(-time.Hour).Unix(), "exp": now.Add(24 * time.Hour).Unix(),
		"video": map[string]any{
			"roomJoin": true, "room": room, "canPublish": publishes, "canSubscribe": !publishes,
		},
	})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(claims)
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)), nil
}

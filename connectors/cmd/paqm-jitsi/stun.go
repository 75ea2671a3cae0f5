// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// The connectivity checks of viewers (RFC 8489, RFC 8445): who sends one that is signed with an
// endpoint's password is that endpoint, and media goes where its checks come from.

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/binary"
	"net/netip"
)

const (
	stunHeader, stunCookie, stunBinding = 20, 0x2112a442, 0x0001
	attrUsername, attrIntegrity         = 0x0006, 0x0008
	usernameMax                         = 513 // bytes, RFC 8489, 14.3

	udpHeader, ipv6Header = 8, 40
	protocolUDP           = 17
)

// check is a binding request with USERNAME and MESSAGE-INTEGRITY.
type check struct {
	from, to netip.AddrPort
	username string
	signed   []byte // what the sum is over, with the length as it is counted there
	sum      []byte
}

// readCheck takes an IP packet apart; ok: it is such a request, whole.
func readCheck(packet []byte) (c check, ok bool) {
	if len(packet) < ipv6Header {
		return c, false
	}
	var from, to netip.Addr
	switch packet[0] >> 4 {
	case 4:
		header := int(packet[0]&15) * 4
		fragment := binary.BigEndian.Uint16(packet[6:]) & 0x3fff // more of them, or offset
		if packet[9] != protocolUDP || fragment != 0 || header < 20 || header > len(packet) {
			return c, false
		}
		from, to = netip.AddrFrom4([4]byte(packet[12:16])), netip.AddrFrom4([4]byte(packet[16:20]))
		packet = packet[header:]
	case 6:
		if packet[6] != protocolUDP {
			return c, false
		}
		from, to = netip.AddrFrom16([16]byte(packet[8:24])), netip.AddrFrom16([16]byte(packet[24:40]))
		packet = packet[ipv6Header:]
	default:
		return c, false
	}
	if len(packet) < udpHeader+stunHeader {
		return c, false
	}
	length := int(binary.BigEndian.Uint16(packet[4:]))
	if length < udpHeader+stunHeader || length > len(packet) {
		return c, false
	}
	c.from = netip.AddrPortFrom(from, binary.BigEndian.Uint16(packet))
	c.to = netip.AddrPortFrom(to, binary.BigEndian.Uint16(packet[2:]))
	return c, c.read(packet[udpHeader:length])
}

func (c *check) read(message []byte) bool {
	if binary.BigEndian.Uint16(message) != stunBinding ||
		binary.BigEndian.Uint32(message[4:]) != stunCookie ||
		int(binary.BigEndian.Uint16(message[2:])) != len(message)-stunHeader {
		return false
	}
	for at := stunHeader; at+4 <= len(message); {
		kind, size := binary.BigEndian.Uint16(message[at:]), int(binary.BigEndian.Uint16(message[at+2:]))
		value := at + 4
		if value+size > len(message) {
			return false
		}
		switch {
		case kind == attrUsername && size <= usernameMax:
			c.username = string(message[value : value+size])
		case kind == attrIntegrity && size == sha1.Size:
			c.sum = message[value : value+size]
			c.signed = append([]byte(nil), message[:at]...)
			// the length is counted to the end of this attribute, whatever follows (FINGERPRINT)
			binary.BigEndian.PutUint16(c.signed[2:], uint16(value+size-stunHeader))
			return c.username != ""
		}
		at = value + (size+3)&^3
	}
	return false
}

// by says whether who knows this password has signed it.
func (c *check) by(password string) bool {
	sum := hmac.New(sha1.New, []byte(password))
	sum.Write(c.signed)
	return hmac.Equal(sum.Sum(nil), c.sum)
}

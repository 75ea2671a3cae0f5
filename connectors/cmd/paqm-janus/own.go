// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// By which address of this host Janus sends, where it names itself as others see it.

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// own is the address that the one UDP socket of a port is bound to, of the version of remote; invalid if none
// is, or several are. Janus binds a socket for each address. paqmd takes packets of an open address for ours only
// if the socket is of our own user, and Janus mostly runs as another.
func own(port uint16, remote netip.Addr) netip.Addr {
	found := map[netip.Addr]bool{}
	for _, name := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		if table, err := os.Open(name); err == nil { // without IPv6 there is no second one
			bound(table, port, found)
			table.Close()
		}
	}
	var one netip.Addr
	for address := range found {
		if address.Is4() != remote.Unmap().Is4() || address.IsUnspecified() || address.IsLoopback() {
			continue
		}
		if one.IsValid() {
			return netip.Addr{}
		}
		one = address
	}
	return one
}

// bound adds the addresses that sockets of a port have in such a table (proc(5)).
func bound(table io.Reader, port uint16, to map[netip.Addr]bool) {
	for lines := bufio.NewScanner(table); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		address, number, _ := strings.Cut(words[1], ":")
		if n, err := strconv.ParseUint(number, 16, 16); err != nil || uint16(n) != port {
			continue
		}
		b, err := hex.DecodeString(address)
		if err != nil || len(b) != 4 && len(b) != 16 {
			continue
		}
		for at := 0; at < len(b); at += 4 { // words in the host's order
			binary.NativeEndian.PutUint32(b[at:], binary.BigEndian.Uint32(b[at:]))
		}
		one, _ := netip.AddrFromSlice(b)
		to[one.Unmap()] = true
	}
}

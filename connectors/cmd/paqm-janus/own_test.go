// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"paqm.example/client"
)

// Behind a NAT a viewer is registered by the address that Janus' socket has on this host: paqmd counts packets
// of an open one only if the socket is of the connector's own user.
func TestSourceBehindNAT(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	paqmd, err := client.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer paqmd.Close()
	conn, err := listener.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	route, err := net.Dial("udp4", "192.0.2.7:9") // sends nothing
	if err != nil {
		t.Skip("this host has no route")
	}
	defer route.Close()
	janus := route.LocalAddr().(*net.UDPAddr).AddrPort()
	c := &connector{client: paqmd}
	pair := fmt.Sprintf("203.0.113.9:%d [srflx,udp] <-> 192.0.2.7:47846 [host,udp]", janus.Port())
	if _, err := c.add(pair); err != nil {
		t.Fatal(err)
	}
	record := make([]byte, 512)
	n, err := conn.Read(record)
	if err != nil || n != 80 {
		t.Fatal(n, err)
	}
	if source := netip.AddrFrom16([16]byte(record[8:24])).Unmap(); source != janus.Addr() {
		t.Errorf("source %v, Janus sends from %v", source, janus.Addr())
	}
}

func TestBound(t *testing.T) {
	found := map[netip.Addr]bool{}
	bound(strings.NewReader("  sl  local_address rem_address\n"+
		"  1: 0201000A:138C 00000000:0000 07\n  2: 0301000A:138D 00000000:0000 07\n"+
		"  3: B80D0120000000000000000001000000:138C 0 07\n  4: 0000000000000000FFFF00000401000A:138C 0 07\n"+
		" bad\n 5: 02:138C 0\n 6: 0201000A: 0\n"), 0x138c, found)
	want := map[netip.Addr]bool{
		netip.MustParseAddr("10.0.1.2"): true, netip.MustParseAddr("2001:db8::1"): true,
		netip.MustParseAddr("10.0.1.4"): true,
	}
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("%v, expected %v (on a little-endian machine)", found, want)
	}
}

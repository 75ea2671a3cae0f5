// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"net"
	"testing"
)

// Media is where the HTTP server is: a name must not open it to everybody.
func TestListenMedia(t *testing.T) {
	for listen, all := range map[string]bool{"localhost:1": false, "127.0.0.1:1": false, ":1": true} {
		conn, err := listenMedia(listen, 0)
		if err != nil {
			t.Fatal(err)
		}
		at := conn.LocalAddr().(*net.UDPAddr)
		conn.Close()
		if at.IP.IsUnspecified() != all {
			t.Errorf("--listen %s: media at %v", listen, at)
		}
	}
	for _, listen := range []string{"nothing", "no name:1"} {
		if conn, err := listenMedia(listen, 0); err == nil {
			t.Errorf("--listen %s: media at %v", listen, conn.LocalAddr())
		}
	}
}

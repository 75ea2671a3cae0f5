// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
)

// opened is an endpoint with advice, and its bridge.
func opened(t *testing.T, bridge websocket.Handler) *endpoint {
	server := httptest.NewServer(bridge)
	t.Cleanup(server.Close)
	conn, err := websocket.Dial("ws"+strings.TrimPrefix(server.URL, "http"), "", "http://localhost")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &endpoint{
		bridge: conn, rate: rate{ceiling: 20e6}, news: make(chan float64, 1),
		pairs: map[[2]netip.AddrPort]*pair{{}: {bps: 1_050_000, seen: time.Now()}},
	}
}

// A bridge that does not read holds up neither the others nor the lock.
func TestStuckBridge(t *testing.T) {
	const much = 64 << 20 // more than sockets hold
	release := make(chan struct{}, 1)
	t.Cleanup(func() { close(release) })
	stuck := opened(t, func(*websocket.Conn) { <-release })
	heard := make(chan string, 10)
	well := opened(t, func(conn *websocket.Conn) {
		for {
			var text string
			if websocket.Message.Receive(conn, &text) != nil {
				return
			}
			heard <- text
		}
	})
	c := &connector{endpoints: map[*endpoint]bool{stuck: true, well: true}, names: map[name]*endpoint{}}
	given, begun := make(chan struct{}), make(chan struct{})
	go func() {
		close(begun)
		_ = write(stuck.bridge, websocket.BinaryFrame, make([]byte, much))
		close(given)
	}()
	<-begun
	time.Sleep(100 * time.Millisecond) // into the write
	looked := make(chan struct{})
	go func() {
		c.look(time.Now())
		close(looked)
	}()
	expect := func(what string, ready <-chan struct{}) {
		t.Helper()
		select {
		case <-ready:
		case <-given:
			t.Fatal("the bridge that takes nothing was waited for: " + what)
		}
	}
	expect("advice", looked)
	told := func(bps float64) {
		t.Helper()
		select {
		case text := <-heard:
			if text != message(bps) {
				t.Error(text)
			}
		case <-given:
			t.Fatal("the other was not told")
		}
	}
	told(1e6)
	left := make(chan struct{})
	go func() {
		c.leave()
		close(left)
	}()
	told(own)
	release <- struct{}{} // its connection ends
	<-left
}

// What is told last is the newest.
func TestNewestIsTold(t *testing.T) {
	last := make(chan string, 1)
	e := opened(t, func(conn *websocket.Conn) {
		text := ""
		for {
			var next string
			if websocket.Message.Receive(conn, &next) != nil {
				last <- text
				return
			}
			text = next
		}
	})
	c := &connector{endpoints: map[*endpoint]bool{e: true}}
	for _, p := range e.pairs {
		for bps := 2_000_000; bps > 1_000_000; bps -= 50_000 {
			p.bps = uint64(bps)
			c.tell(e, time.Now())
		}
	}
	c.leave()
	e.bridge.Close()
	if text := <-last; text != message(own) {
		t.Error(text)
	}
}

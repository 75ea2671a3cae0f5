// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"paqm.example/client"
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
		pairs: map[way]*pair{{}: {bps: 1_050_000, seen: time.Now()}},
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
	c := &connector{endpoints: map[*endpoint]bool{stuck: true, well: true}}
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

// A bridge whose answer has no end is left, and what it says is not kept.
func TestEndlessAnswer(t *testing.T) {
	const much = 32 << 20 // more than sockets hold
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	taken := make(chan int, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		sum, line := 0, append([]byte("A: "), bytes.Repeat([]byte{'a'}, 1<<16)...)
		_, err = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\n"))
		for err == nil && sum < much {
			var n int
			n, err = conn.Write(append(line, "\r\n"...))
			sum += n
		}
		taken <- sum
	}()
	c := &connector{bridge: "ws://" + listener.Addr().String()}
	answer := httptest.NewRecorder()
	c.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, channel+"a/b/c?pwd=p", nil))
	if answer.Code != http.StatusBadGateway {
		t.Error(answer.Code)
	}
	if sum := <-taken; sum >= much {
		t.Errorf("%d bytes of its answer were taken", sum)
	}
}

// A ping that comes long after the last message was sent is answered, and the channel stays.
func TestPingAfterSilence(t *testing.T) {
	e := opened(t, func(conn *websocket.Conn) {
		_ = write(conn, websocket.PingFrame, nil)
		_ = write(conn, websocket.TextFrame, []byte("on"))
		_, _, _ = heard(conn)
	})
	if err := e.bridge.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil { // as write() left it
		t.Fatal(err)
	}
	if _, text, err := heard(e.bridge); err != nil || string(text) != "on" {
		t.Error(string(text), err)
	}
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

// A viewer whose channel ends may go on being sent pictures: nothing that nobody takes back holds for him but
// what he has asked for himself.
func TestChannelEnds(t *testing.T) {
	for _, wish := range []float64{0, 400_000} {
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
		paqmd, err := client.Open(filepath.Join(t.TempDir(), "none"))
		if err != nil {
			t.Fatal(err)
		}
		defer paqmd.Close()
		e.rate.wish = wish
		for _, p := range e.pairs {
			p.bps = 300_000
		}
		c := &connector{
			client: paqmd, endpoints: map[*endpoint]bool{}, ways: map[way]*endpoint{}, nobodys: map[name]bool{},
		}
		left := make(chan struct{})
		viewers := httptest.NewServer(websocket.Handler(func(viewer *websocket.Conn) {
			c.join(e, viewer)
			close(left)
		}))
		defer viewers.Close()
		viewer, err := websocket.Dial("ws"+strings.TrimPrefix(viewers.URL, "http"), "", "http://localhost")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // he is told of advice
		viewer.Close()
		<-left
		want := message(own)
		if wish != 0 {
			want = message(wish)
		}
		if text := <-last; text != want {
			t.Errorf("%s, expected %s", text, want)
		}
	}
}

// A message in several frames, with a ping between them, is one for the bridge, too.
func TestFragments(t *testing.T) {
	texts := make(chan string, 3)
	e := opened(t, func(conn *websocket.Conn) {
		for {
			var text string
			if websocket.Message.Receive(conn, &text) != nil {
				close(texts)
				return
			}
			texts <- text
		}
	})
	const ask = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nOrigin: http://x\r\n\r\n"
	done := make(chan struct{})
	viewers := httptest.NewServer(websocket.Handler(func(viewer *websocket.Conn) {
		(&connector{}).pump(viewer, e.bridge, func(text string) string { return text })
		close(done)
	}))
	defer viewers.Close()
	raw, err := net.Dial("tcp", strings.TrimPrefix(viewers.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	frame := func(first byte, text string) {
		if _, err := raw.Write(append([]byte{first, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)); err != nil {
			t.Error(err)
		}
	}
	if _, err := raw.Write([]byte(ask)); err != nil {
		t.Fatal(err)
	}
	if answer, err := http.ReadResponse(bufio.NewReader(raw), nil); err != nil || answer.StatusCode != 101 {
		t.Fatal(answer, err)
	}
	frame(websocket.TextFrame, `{"colibriClass":`)
	frame(final|websocket.PingFrame, "")
	frame(websocket.ContinuationFrame, `"EndpointStats"`)
	frame(final|websocket.ContinuationFrame, `}`)
	frame(final|websocket.TextFrame, "{}")
	raw.Close()
	<-done
	e.bridge.Close()
	for _, want := range []string{`{"colibriClass":"EndpointStats"}`, "{}"} {
		if text := <-texts; text != want {
			t.Errorf("%s, expected %s", text, want)
		}
	}
}

// signed is a check as who knows the password sends it.
func signed(username, password, from string) check {
	sum := hmac.New(sha1.New, []byte(password))
	return check{
		from: netip.MustParseAddrPort(from), to: netip.MustParseAddrPort("192.0.2.1:10000"),
		username: username, sum: sum.Sum(nil),
	}
}

// Checks that nobody has signed, and who joins meanwhile, take no advice from who has some.
func TestAFloodOfChecks(t *testing.T) {
	var said bytes.Buffer
	before := log.Writer()
	log.SetOutput(&said)
	t.Cleanup(func() { log.SetOutput(before) })
	paqmd, err := client.Open(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	defer paqmd.Close()
	c := &connector{
		client: paqmd, endpoints: map[*endpoint]bool{}, ways: map[way]*endpoint{},
		names: map[string]*endpoint{}, nobodys: map[name]bool{},
	}
	one := func(password string) *endpoint {
		e := &endpoint{password: password, pairs: map[way]*pair{}, news: make(chan float64, 1)}
		c.enter(e)
		return e
	}
	flood := func() {
		for n := range 2 * tries {
			c.onCheck(signed(fmt.Sprint("nobody", n), "guess", "198.51.100.9:9"))
		}
	}
	first := one("secret")
	c.onCheck(signed("b:one", "secret", "198.51.100.1:1"))
	if len(first.pairs) != 1 {
		t.Fatal("a viewer is not learned")
	}
	for _, p := range first.pairs {
		p.seen = time.Time{}
	}
	flood()
	second := one("another")
	c.onCheck(signed("b:one", "secret", "198.51.100.1:1"))
	for _, p := range first.pairs {
		if p.seen.IsZero() {
			t.Error("the check of a known viewer is passed over")
		}
	}
	c.onCheck(signed("b:one", "secret", "198.51.100.2:2"))
	if len(first.pairs) != 2 {
		t.Error("a known viewer's new address is passed over")
	}
	c.onCheck(signed("b:one", "guess", "198.51.100.1:1"))
	c.onCheck(signed("b:two", "another", "198.51.100.3:3"))
	if len(second.pairs) != 0 {
		t.Error("more is tried than may be")
	}
	now := time.Now()
	delete(c.endpoints, first) // with no bridge to tell
	delete(c.endpoints, second)
	c.look(now)
	c.look(now.Add(time.Second))
	if want := fmt.Sprintf("%d checks", tries+3); strings.Count(said.String(), "checks") != 1 ||
		!strings.Contains(said.String(), want) {
		t.Errorf("%q, expected %s", said.String(), want)
	}
	c.endpoints[second] = true
	c.onCheck(signed("b:two", "another", "198.51.100.3:3"))
	if len(second.pairs) != 1 {
		t.Error("in the next second, too")
	}
	c.forget(first)
	c.forget(second)
	if len(c.ways) != 0 || len(c.names) != 0 {
		t.Error("something is left", c.ways, c.names)
	}
}

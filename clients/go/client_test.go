// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package client

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for " + what)
		}
	}
}

// A stream ends with its client, also one that nobody reads any more.
func TestStreamEnds(t *testing.T) {
	before := runtime.NumGoroutine()
	c, err := Open(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	number, err := c.Add(stream)
	if err != nil {
		t.Fatal(err)
	}
	c.Stream(context.Background())
	c.mu.Lock()
	c.tellOf(c.flows[number], Advice{Cause: ERF, RateBPS: 1})
	c.mu.Unlock()
	until(t, "the advice to be taken", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.news) == 0
	})
	c.Close()
	until(t, "its end", func() bool { return runtime.NumGoroutine() <= before })
}

// What the tests send.
var stream = Flow{
	Source:      netip.MustParseAddrPort("0.0.0.0:5004"),
	Destination: netip.MustParseAddrPort("192.0.2.7:5006"), CeilingBPS: RateMax,
}

// unanswered is a socket that takes connections, as systemd's does, with no paqmd behind it, and a
// client of it, both until the test ends.
func unanswered(t *testing.T) (*net.UnixListener, *Client) {
	t.Helper()
	at := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "socket"), Net: "unixpacket"}
	daemon, err := net.ListenUnix("unixpacket", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { daemon.Close() })
	c, err := Open(at.Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return daemon, c
}

// Trouble is told while nobody answers, and ends with the answer.
func TestNobodyAnswers(t *testing.T) {
	daemon, c := unanswered(t)
	number, err := c.Add(stream)
	if err != nil || c.Trouble() != "" {
		t.Fatal(err, c.Trouble())
	}
	until(t, "trouble", func() bool { return c.Trouble() == "it does not answer" })
	conn, err := daemon.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	answer := head(kindRegistered, 24)
	host.PutUint64(answer[8:], number)
	if _, err := conn.Write(answer); err != nil {
		t.Fatal(err)
	}
	until(t, "its end", func() bool { return c.Trouble() == "" })
	conn.Close()
}

// Advice of a paqmd that hangs ends soon after the machine has slept for longer than it holds.
func TestSleep(t *testing.T) {
	c, err := Open(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	number, err := c.Add(stream)
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.onRate(&Advice{Flow: number, Cause: ERF, RateBPS: 1_000_000, Period: 10 * time.Second})
	c.now = func() time.Duration { return boottime() + time.Hour }
	c.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second) // it would hold for 31
	defer stop()
	for cause := ERF; cause != Lost; {
		news, err := c.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cause = news.Cause
	}
}

// Flows that come and go while paqmd hangs leave nothing behind: it was never told of them.
func TestHangLeavesNothing(t *testing.T) {
	_, c := unanswered(t)
	for i := 0; i < 20_000; i++ {
		number, err := c.Add(stream)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Remove(number); err != nil {
			t.Fatal(err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.other) > otherMax || len(c.untold) > otherMax {
		t.Fatalf("%d records and %d flows wait", len(c.other), len(c.untold))
	}
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package client

import (
	"context"
	"net/netip"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// A stream ends with its client, also one that nobody reads any more.
func TestStreamEnds(t *testing.T) {
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("waited in vain for " + what)
			}
		}
	}
	before := runtime.NumGoroutine()
	c, err := Open(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	number, err := c.Add(Flow{
		Source:      netip.MustParseAddrPort("0.0.0.0:5004"),
		Destination: netip.MustParseAddrPort("192.0.2.7:5006"), CeilingBPS: RateMax,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Stream(context.Background())
	c.mu.Lock()
	c.tellOf(c.flows[number], Advice{Cause: ERF, RateBPS: 1})
	c.mu.Unlock()
	until("the advice to be taken", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.news) == 0
	})
	c.Close()
	until("its end", func() bool { return runtime.NumGoroutine() <= before })
}

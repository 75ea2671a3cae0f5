// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package pion

import (
	"sync"
	"time"
)

const (
	// What a picture is for all viewers is sent over this part of the time until the next one.
	lotPart = 0.8
	// The rate of a lot is the mean over about so much.
	lotMemory = time.Second
)

// lot spreads the packets of all flows behind one router. A picture goes to all viewers of a server
// at once; fifty packets in one lot stand in the queue of the router for milliseconds, though each
// flow keeps its own rate. So they leave at the rate of them all, somewhat faster than they come.
type lot struct {
	mu    sync.Mutex
	free  time.Time // of what is reserved
	bps   float64   // mean of what is sent
	since time.Time
	bytes int // since then
}

// slot is when a packet of so many bytes may leave: they leave in the order in which they ask.
func (l *lot) slot(now time.Time, size int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(now, size)
	if l.free.Before(now) {
		l.free = now
	}
	at := l.free
	if l.bps > 0 {
		rate := l.bps / lotPart
		took := time.Duration(float64(size) * 8 / rate * float64(time.Second))
		// A key picture for all is sent within longestWait; nearer to it the lot goes faster.
		full := float64(at.Sub(now)) / float64(longestWait)
		if full > 0.5 {
			took = time.Duration(float64(took) * max(0, 2*(1-full)))
		}
		l.free = at.Add(took)
	}
	return at
}

func (l *lot) count(now time.Time, size int) {
	if l.since.IsZero() {
		l.since = now
	}
	l.bytes += size
	past := now.Sub(l.since)
	if past < lotMemory/10 {
		return
	}
	rate := float64(l.bytes) * 8 / past.Seconds()
	part := min(1, float64(past)/float64(lotMemory))
	if l.bps == 0 {
		l.bps = rate
	} else {
		l.bps += part * (rate - l.bps)
	}
	l.since, l.bytes = now, 0
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package pion

import (
	"sync"
	"time"
)

const (
	// What a picture is for all viewers is sent over this part of the time until the next one.
	lotPart = 0.8
	// The rate of a lot is a mean over about so much, taken this often.
	lotMemory, lotStep = time.Second, 200 * time.Millisecond
)

// lot spreads the packets of all flows behind one router. A picture goes to all viewers of a server
// at once; fifty packets in one lot stand in the queue of the router for milliseconds, though each
// flow keeps its own rate. So they leave at the rate at which all of them come, somewhat faster.
type lot struct {
	mu    sync.Mutex
	free  time.Time // of what has a slot
	bps   float64   // mean of what comes
	since time.Time
	bytes int // came since then
	wait  int // bytes without a slot
	most  int // of them since there were none
}

// come says that so many bytes wait for slots.
func (l *lot) come(now time.Time, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait += size
	l.most = max(l.most, l.wait)
	l.bytes += size
	if l.since.IsZero() {
		l.since = now
	}
	past := now.Sub(l.since)
	if past < lotStep {
		return
	}
	rate := float64(l.bytes) * 8 / past.Seconds()
	if l.bps == 0 {
		l.bps = rate
	} else {
		l.bps += min(1, past.Seconds()/lotMemory.Seconds()) * (rate - l.bps)
	}
	l.since, l.bytes = now, 0
}

// leave says that bytes do not wait any more, without having had a slot.
func (l *lot) leave(size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait -= size
}

// slot is when a packet may leave: in the order in which they ask, and within longestWait, about.
func (l *lot) slot(now time.Time, size int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free.Before(now) {
		l.free = now
	}
	at := l.free
	rate := max(l.bps/lotPart, float64(l.most)*8/longestWait.Seconds())
	l.wait -= size
	if l.wait <= 0 {
		l.most = 0
	}
	if rate > 0 {
		l.free = at.Add(time.Duration(float64(size) * 8 / rate * float64(time.Second)))
	}
	return at
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// Package share turns advice for the many receivers of a server into what each may be sent.
//
// A router tells every flow the same rate R: what one flow more could use. A sender with a live
// encoder takes it. The receivers of an SFU cannot: each stays on a layer below R, so that capacity
// is left, R rises for all at once, and if all went up a layer they would overload the link at once.
// So rises are granted to some at a time, in a round half of what a single flow may take, and the
// next ones wait until the router has measured them. Falls are for all and at once.
package share

import (
	"sync"
	"time"
)

const (
	// A rise is granted up to this part of R: layers vary, and who is above R is held back.
	riseTo = 0.9
	// Between two grants: a layer begins with its next key picture, and the router measures it.
	restRounds = 2
	rest       = 750 * time.Millisecond
	// A grant beyond the first of a round takes no more than this part of what is left.
	grantPart = 0.5
	// A flow that fell rises again after so long, and twice that each time it falls soon after.
	pauseMin, pauseMax = time.Second, 16 * time.Second
	soon               = 8 * time.Second
)

// Gate knows what was granted lately behind which router. It is for all receivers of a server.
type Gate struct {
	mu      sync.Mutex
	routers map[uint64]*router
}

type router struct {
	left float64 // bit/s that may still be granted in this round
	next time.Time
}

// NewGate makes one.
func NewGate() *Gate {
	return &Gate{routers: map[uint64]*router{}}
}

// Flow is what the gate remembers of a receiver; its zero value is a new one.
type Flow struct {
	rose  time.Time
	pause time.Duration
	until time.Time // no rise before
}

// Advice is what the gate needs to know of an advice.
type Advice struct {
	RouterID uint64
	RateBPS  float64 // R, in the unit of the layers
	Period   time.Duration
}

// Layer picks the layer that a flow may be sent: an index into rates, which rise. Layer 0 is always
// allowed. now is the present one.
func (g *Gate) Layer(f *Flow, a Advice, rates []float64, now int, at time.Time) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	fit := 0
	for i, rate := range rates {
		if rate <= a.RateBPS {
			fit = i
		}
	}
	if fit < now {
		f.fell(at)
		return fit
	}
	if now+1 >= len(rates) || rates[now+1] > riseTo*a.RateBPS || at.Before(f.until) {
		return now
	}
	r := g.routers[a.RouterID]
	if r == nil {
		r = &router{}
		g.routers[a.RouterID] = r
	}
	if !at.Before(r.next) {
		// What one flow more could use beside what it uses. The first step fits in any case.
		r.left = max(grantPart*(a.RateBPS-rates[now]), rates[now+1]-rates[now])
		r.next = at.Add(rest + restRounds*a.Period)
	}
	step := rates[now+1] - rates[now]
	if step > r.left {
		return now
	}
	r.left -= step
	f.rose = at
	return now + 1
}

func (f *Flow) fell(at time.Time) {
	f.pause = min(2*f.pause, pauseMax)
	if f.pause == 0 || at.Sub(f.rose) > soon {
		f.pause = pauseMin
	}
	f.until = at.Add(f.pause)
}

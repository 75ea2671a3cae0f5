// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// Package share turns advice for the many receivers of a server into what each may be sent.
//
// A router tells a flow what it could use if the others stayed as they are, up to twice what it uses.
// A sender with a live encoder takes it. The receivers of an SFU cannot: each stays on a layer below,
// so that capacity is left, the rate rises for all at once, and if all went up a layer they would
// overload the link at once. So rises are granted to some at a time, a small part of what all use in a
// round, the lower ones first, and the next ones wait until the router has measured them. Falls are
// for all and at once.
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
	// All flows behind a router together rise by no more than this part in a round, or by one step.
	riseBy = 0.08
	// A flow that fell rises again after so long, and twice that each time it falls soon after.
	pauseMin, pauseMax = time.Second, 16 * time.Second
	soon               = 8 * time.Second

	routersMax = 256 // from here on those without flows are forgotten
)

// Gate knows what was granted lately behind which router. It is for all receivers of a server.
type Gate struct {
	mu      sync.Mutex
	routers map[uint64]*router
}

type router struct {
	flows int
	uses  float64 // bit/s, of all flows
	left  float64 // bit/s that may still be granted in this round
	begun time.Time
	next  time.Time
}

// NewGate makes one.
func NewGate() *Gate {
	return &Gate{routers: map[uint64]*router{}}
}

// Flow is what the gate remembers of a receiver; its zero value is a new one.
type Flow struct {
	behind *router
	uses   float64

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
	r := g.join(f, a.RouterID)
	r.uses += rates[now] - f.uses
	f.uses = rates[now]
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
	if !at.Before(r.next) {
		r.left = max(riseBy*r.uses, rates[now+1]-rates[now])
		r.begun, r.next = at, at.Add(rest+restRounds*a.Period)
	}
	if f.uses > r.uses/float64(r.flows) && at.Sub(r.begun) < r.next.Sub(r.begun)/2 {
		return now // the lower ones first
	}
	step := rates[now+1] - rates[now]
	if step > r.left {
		return now
	}
	r.left -= step
	f.rose = at
	return now + 1
}

// Leave forgets a receiver that is gone, or has no advice any more.
func (g *Gate) Leave(f *Flow) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.behind != nil {
		f.behind.flows--
		f.behind.uses -= f.uses
	}
	f.behind, f.uses = nil, 0
}

// join counts a flow among those behind a router.
func (g *Gate) join(f *Flow, id uint64) *router {
	r := g.routers[id]
	if r == nil {
		if len(g.routers) >= routersMax {
			for old, of := range g.routers {
				if of.flows == 0 {
					delete(g.routers, old)
				}
			}
		}
		r = &router{}
		g.routers[id] = r
	}
	if f.behind != r {
		if f.behind != nil {
			f.behind.flows--
			f.behind.uses -= f.uses
		}
		f.behind, f.uses = r, 0
		r.flows++
	}
	return r
}

func (f *Flow) fell(at time.Time) {
	f.pause = min(2*f.pause, pauseMax)
	if f.pause == 0 || at.Sub(f.rose) > soon {
		f.pause = pauseMin
	}
	f.until = at.Add(f.pause)
}

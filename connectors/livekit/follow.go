// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// Package livekit lets the viewers of a LiveKit server follow P-AQM routers: what a router allows a
// viewer is the viewer's channel capacity, from which LiveKit picks layers.
//
//	server, err := service.InitializeServer(config, node)
//	follower, err := livekit.NewFollower(livekit.Options{Rooms: ..., Names: ...})
//	go follower.Run(ctx)
//	server.Start()
//
// LiveKit has no call for this from outside: SetSubscriberChannelCapacity is a method of a participant
// in the server's memory. So this runs within the server; cmd/paqm-livekit is LiveKit's server with it.
package livekit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/livekit/livekit-server/pkg/rtc"
	"github.com/livekit/protocol/livekit"
	"github.com/livekit/protocol/logger"

	"paqm.example/client"
	"paqm.example/connectors/share"
)

const (
	tick  = 50 * time.Millisecond // between two looks at viewers
	names = time.Second           // between two at which rooms there are
	// A new viewer is sent little for so long, until a router on the way has spoken: one with many
	// flows tells those first that last for 2 s.
	patience = 3 * time.Second
	open     = int64(1e12) // bit/s: every track at its best
	every    = 60          // of the same failure is told
)

// Options are what a Follower needs.
type Options struct {
	Socket  string // paqmd's; "": the default
	Ceiling uint64 // most that advice counts, bit/s at the IP level
	Start   uint64 // what a new viewer is sent until there is advice, bit/s; 0: what LiveKit likes
	// Names tells which rooms there are, here or on other nodes.
	Names func(context.Context) ([]string, error)
	// Room gives one that is here, nil if it is not.
	Room   func(context.Context, livekit.RoomName) *rtc.Room
	Events io.Writer     // JSON lines: which capacity was set, and why; may be nil
	Log    logger.Logger // nil: LiveKit's
}

// Follower follows for all viewers of a server.
type Follower struct {
	Options
	client  *client.Client
	gate    *share.Gate
	rooms   []string
	viewers map[livekit.ParticipantID]*viewer
	numbers map[uint64]*viewer
	failed  map[string]int // how often, by what
}

// NewFollower makes one. paqmd need not be there yet.
func NewFollower(o Options) (*Follower, error) {
	if o.Ceiling == 0 || o.Ceiling > client.RateMax || o.Start > o.Ceiling {
		return nil, fmt.Errorf("ceiling %d, start %d: expected 1 to %d, and a start that is not above it",
			o.Ceiling, o.Start, uint64(client.RateMax))
	}
	if o.Names == nil || o.Room == nil {
		return nil, errors.New("it needs Names and Room")
	}
	if o.Log == nil {
		o.Log = logger.GetLogger()
	}
	paqmd, err := client.Open(o.Socket)
	if err != nil {
		return nil, fmt.Errorf("paqmd's socket: %w", err)
	}
	return &Follower{
		Options: o, client: paqmd, gate: share.NewGate(),
		viewers: map[livekit.ParticipantID]*viewer{}, numbers: map[uint64]*viewer{},
		failed: map[string]int{},
	}, nil
}

// Run follows until the context ends; then LiveKit's own estimate decides again.
func (f *Follower) Run(ctx context.Context) {
	defer f.client.Close()
	advice := f.client.Stream(ctx)
	found := make(chan []string, 1)
	go f.lookForRooms(ctx, found)
	again := time.NewTicker(tick)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			f.leave()
			return
		case f.rooms = <-found:
		case a := <-advice:
			f.onAdvice(a)
		case <-again.C:
			f.look(ctx, time.Now())
		}
	}
}

// lookForRooms asks in a goroutine of its own: the answer comes by HTTP and may take its time.
func (f *Follower) lookForRooms(ctx context.Context, found chan<- []string) {
	failed := 0
	for {
		list, err := f.Names(ctx)
		if err == nil {
			failed = 0
			select {
			case found <- list:
			case <-ctx.Done():
			}
		} else if failed++; failed%every == 1 {
			f.Log.Warnw("paqm: rooms cannot be listed", err, "failures", failed)
		}
		select {
		case <-time.After(names):
		case <-ctx.Done():
			return
		}
	}
}

// fail tells of a failure, and of every so many of the same kind.
func (f *Follower) fail(what, who string, err error) {
	f.failed[what]++
	if f.failed[what]%every == 1 {
		f.Log.Warnw("paqm: "+what, err, "viewer", who, "failures", f.failed[what])
	}
}

// look finds who came and who went, and tells LiveKit what has changed.
func (f *Follower) look(ctx context.Context, now time.Time) {
	there := map[livekit.ParticipantID]bool{}
	for _, name := range f.rooms {
		here := f.Room(ctx, livekit.RoomName(name))
		if here == nil {
			continue
		}
		for _, one := range here.GetParticipants() {
			if !one.CanSubscribe() || one.IsDisconnected() {
				continue
			}
			there[one.ID()] = true
			if f.viewers[one.ID()] == nil {
				f.viewers[one.ID()] = &viewer{
					to: one, seen: now, granted: float64(f.Start), opened: f.Start == 0,
				}
			}
		}
	}
	for id, v := range f.viewers {
		if !there[id] {
			f.unregister(v)
			delete(f.viewers, id)
			continue
		}
		f.serve(v, now)
	}
}

// guard is deferred where LiveKit is asked: that is no promised interface, and a panic in it must not end
// the server.
func (f *Follower) guard(v *viewer) {
	if what := recover(); what != nil {
		f.fail("LiveKit cannot be asked", string(v.to.ID()), fmt.Errorf("%v", what))
	}
}

// serve looks after one viewer.
func (f *Follower) serve(v *viewer, now time.Time) {
	defer f.guard(v)
	f.register(v)
	v.count(now)
	f.update(v, now)
}

// register names the viewer's packets to paqmd, again when they take another way.
func (f *Follower) register(v *viewer) {
	way, ok := selected(v.to.GetICEConnectionInfo())
	if ok && v.number != 0 && way == v.pair {
		return
	}
	f.unregister(v)
	if !ok {
		return
	}
	number, err := f.client.Add(client.Flow{
		Source: netip.AddrPortFrom(netip.Addr{}, way.port), Destination: way.to, CeilingBPS: f.Ceiling,
	})
	if err != nil {
		f.fail("paqmd takes no such flow", v.name(), fmt.Errorf("%v: %w", way, err))
		return
	}
	v.number, v.pair = number, way
	f.numbers[number] = v
}

func (f *Follower) unregister(v *viewer) {
	if v.number == 0 {
		return
	}
	_ = f.client.Remove(v.number)
	delete(f.numbers, v.number)
	v.number, v.pair = 0, pair{}
	f.lose(v)
}

func (v *viewer) name() string { return string(v.to.Identity()) }

func (f *Follower) onAdvice(a client.Advice) {
	v := f.numbers[a.Flow]
	if v == nil {
		return
	}
	if a.Cause == client.Refused {
		f.fail("paqmd refuses a flow", v.name(), a.Error)
	}
	if a.RateBPS == 0 {
		f.lose(v)
		return
	}
	v.advice = a
	f.serve(v, time.Now())
}

// lose leaves a viewer to LiveKit's own estimate, which goes on from what is sent now.
func (f *Follower) lose(v *viewer) {
	defer f.guard(v)
	had := v.advice.RateBPS != 0
	v.advice, v.lossCap = client.Advice{}, 0
	f.gate.Leave(&v.share)
	if had {
		v.opened = true
		f.tell(v, 0, demand{}, "none")
	}
}

// leave gives viewers back what they have without this.
func (f *Follower) leave() {
	for _, v := range f.viewers {
		f.unregister(v)
		if v.set != 0 { // a new one
			f.open(v, demand{})
		}
	}
}

// open lets LiveKit begin with a viewer as if this were not here.
func (f *Follower) open(v *viewer, d demand) {
	defer f.guard(v)
	v.opened = true
	v.to.SetSubscriberChannelCapacity(open)
	f.tell(v, 0, d, "none")
}

// update tells LiveKit what has changed for a viewer.
func (f *Follower) update(v *viewer, now time.Time) {
	if v.opened && v.advice.RateBPS == 0 {
		return
	}
	d := v.demand()
	if v.advice.RateBPS != 0 {
		if capacity := v.capacity(f.gate, d, now); v.differs(capacity, d, now) {
			f.tell(v, capacity, d, v.advice.Cause.String())
		}
		return
	}
	if now.Sub(v.seen) > patience { // no router speaks on this way: as if this were not here
		f.open(v, d)
		return
	}
	if v.differs(v.granted, d, now) {
		f.tell(v, v.granted, d, "new")
	}
}

// tell sets the capacity; 0: LiveKit's own estimate.
func (f *Follower) tell(v *viewer, capacity float64, d demand, why string) {
	v.set, v.tracks, v.told = capacity, d.tracks, time.Now()
	v.to.SetSubscriberChannelCapacity(int64(capacity))
	if f.Events == nil {
		return
	}
	text, err := json.Marshal(map[string]any{
		"t_ns": time.Now().UnixNano(), "viewer": v.name(), "capacity": int64(capacity),
		"used": int64(d.used), "step": int64(d.step), "why": why, "advice": v.advice.RateBPS,
		"router": v.advice.RouterID, "loss_cap": int64(v.lossCap), "sound": int64(v.audio),
	})
	if err == nil {
		_, _ = f.Events.Write(append(text, '\n'))
	}
}

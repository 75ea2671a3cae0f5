// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// The room: layers that come from the publisher, viewers that are each sent one of them.

import (
	"sort"
	"sync"
	"time"

	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"paqm.example/connectors/media"
	paqm "paqm.example/connectors/pion"
	"paqm.example/connectors/share"
)

const (
	clockRate = 90000
	// The rate of a layer is the largest mean over a window of so much, forgotten slowly: what a
	// layer needs is told by its large seconds.
	window     = time.Second
	forgetting = 0.995
	// A layer of which nothing has come in so many windows is paused: nobody is left on it.
	silence = 2
	// Who asks for key pictures more often is not heard.
	keyPause = 500 * time.Millisecond
	// Pion's own estimate must exceed a layer by this before it is sent, or layers would flap.
	ownMargin = 1.05
)

type layer struct {
	rid   string
	ssrc  uint32
	pc    *webrtc.PeerConnection
	bytes int     // of payload in this window
	bps   float64 // what it needs, of payload
	quiet int     // windows in a row without a packet
	asked time.Time
}

type viewer struct {
	server    *server
	number    int
	out       *webrtc.TrackLocalStaticRTP
	estimator cc.BandwidthEstimator

	// with the room's lock
	share   share.Flow
	now     *layer // is sent; nil: nothing yet
	want    *layer // is sent from its next key picture on
	seq     uint16 // of the last packet
	ts      uint32 // of the last picture
	sent    time.Time
	seqBase uint16 // added to the layer's own
	tsBase  uint32
}

type room struct {
	server  *server
	mu      sync.Mutex
	layers  []*layer // by rate
	viewers []*viewer
	begun   time.Time // of the window
}

func newRoom(s *server) *room { return &room{server: s} }

func (r *room) add(v *viewer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, there := range r.viewers {
		if there == v {
			return
		}
	}
	r.viewers = append(r.viewers, v)
}

func (r *room) remove(v *viewer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server.gate.Leave(&v.share)
	for i, there := range r.viewers {
		if there == v {
			r.viewers = append(r.viewers[:i], r.viewers[i+1:]...)
			return
		}
	}
}

// receive forwards a layer until it ends.
func (r *room) receive(pc *webrtc.PeerConnection, t *webrtc.TrackRemote) {
	l := &layer{rid: t.RID(), ssrc: uint32(t.SSRC()), pc: pc}
	r.mu.Lock()
	r.layers = append(r.layers, l)
	r.mu.Unlock()
	for {
		p, _, err := t.ReadRTP()
		if err != nil {
			break
		}
		r.forward(l, p)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, there := range r.layers {
		if there == l {
			r.layers = append(r.layers[:i], r.layers[i+1:]...)
		}
	}
	for _, v := range r.viewers {
		if v.now == l {
			v.now = nil
		}
		if v.want == l {
			v.want = nil
		}
	}
}

func (r *room) forward(l *layer, p *rtp.Packet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.bytes += len(p.Payload)
	key := media.BeginsKey(p.Payload)
	now := time.Now()
	for _, v := range r.viewers {
		if v.want == l && key {
			v.begin(l, p, now)
		}
		if v.now == l {
			v.send(p, now)
		}
	}
}

// begin changes to a layer whose key picture begins with this packet.
func (v *viewer) begin(l *layer, p *rtp.Packet, now time.Time) {
	if !v.sent.IsZero() {
		gap := uint32(now.Sub(v.sent).Seconds() * clockRate)
		v.seqBase = v.seq + 1 - p.SequenceNumber
		v.tsBase = v.ts + max(gap, 1) - p.Timestamp
	}
	v.now, v.want = l, nil
	v.server.event(map[string]any{"viewer": v.number, "layer": l.rid})
}

func (v *viewer) send(p *rtp.Packet, now time.Time) {
	out := rtp.Packet{
		Header: rtp.Header{
			Version: 2, Marker: p.Marker,
			SequenceNumber: p.SequenceNumber + v.seqBase, Timestamp: p.Timestamp + v.tsBase,
		},
		Payload: p.Payload,
	}
	if d := int16(out.SequenceNumber - v.seq); d > 0 || v.sent.IsZero() {
		v.seq, v.ts, v.sent = out.SequenceNumber, out.Timestamp, now
	}
	_ = v.out.WriteRTP(&out) // a viewer that has gone is removed when its connection says so
}

// feedback passes requests for key pictures on, and lets pion's interceptors see what comes.
func (v *viewer) feedback(sender *webrtc.RTPSender) {
	for {
		packets, _, err := sender.ReadRTCP()
		if err != nil {
			return
		}
		for _, p := range packets {
			switch p.(type) {
			case *rtcp.PictureLossIndication, *rtcp.FullIntraRequest:
				v.server.room.ask(v)
			}
		}
	}
}

func (r *room) ask(v *viewer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.now != nil {
		v.now.askKey()
	}
}

func (l *layer) askKey() {
	if time.Since(l.asked) < keyPause {
		return
	}
	l.asked = time.Now()
	go func() {
		_ = l.pc.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: l.ssrc}})
	}()
}

// run measures layers and picks one for each viewer.
func (r *room) run() {
	r.begun = time.Now()
	for range time.Tick(tick) {
		r.mu.Lock()
		r.measure(time.Now())
		for _, v := range r.viewers {
			r.pick(v)
		}
		r.mu.Unlock()
	}
}

func (r *room) measure(now time.Time) {
	past := now.Sub(r.begun)
	if past < window {
		return
	}
	for _, l := range r.layers {
		l.bps = max(forgetting*l.bps, float64(l.bytes)*8/past.Seconds())
		if l.quiet++; l.bytes != 0 {
			l.quiet = 0
		}
		l.bytes = 0
	}
	r.begun = now
	sort.Slice(r.layers, func(i, j int) bool { return r.layers[i].bps < r.layers[j].bps })
}

func (r *room) pick(v *viewer) {
	var layers []*layer
	var rates []float64
	wanted := v.now
	if v.want != nil {
		wanted = v.want
	}
	at, have := 0, false
	for _, l := range r.layers {
		if l.quiet >= silence {
			continue
		}
		if l == wanted {
			at, have = len(layers), true
		}
		layers, rates = append(layers, l), append(rates, l.bps)
	}
	if len(layers) == 0 {
		return
	}
	next, why := r.choose(v, rates, at)
	if have && next == at {
		return
	}
	l := layers[next]
	if l == v.now {
		v.want = nil
		return
	}
	v.want = l
	l.askKey()
	why["viewer"], why["want"], why["bps"] = v.number, l.rid, int(l.bps)
	v.server.event(why)
}

func (r *room) choose(v *viewer, rates []float64, at int) (int, map[string]any) {
	limit := float64(r.server.ceiling)
	if e, ok := v.estimator.(*paqm.Estimator); ok {
		limit = e.Media(limit)
		if a := e.Advice(); a.RateBPS != 0 {
			target := min(e.Media(float64(a.RateBPS)), float64(e.GetTargetBitrate()))
			return r.server.gate.Layer(&v.share, share.Advice{
				RouterID: a.RouterID, RateBPS: target, Period: a.Period,
			}, rates, at, time.Now()), map[string]any{"advice": a.RateBPS, "router": a.RouterID}
		}
	}
	r.server.gate.Leave(&v.share)
	own := min(float64(v.estimator.GetTargetBitrate()), limit) // paqmd knows of the limit, this does not
	next := 0
	for i, rate := range rates {
		need := rate
		if i > at {
			need *= ownMargin
		}
		if need <= own {
			next = i
		}
	}
	return next, map[string]any{"estimate": int(own)}
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"paqm.example/connectors/media"
)

const (
	// A packet that is missing for so long is given up: what a player's buffer holds.
	patience = 300 * time.Millisecond
	// W3C webrtc-stats, freezeCount: mean of so many intervals, and what is more than it.
	freezeMean, freezeMore, freezeTimes = 30, 0.15, 3
)

type freeze struct {
	At      float64 `json:"at_s"`
	Seconds float64 `json:"s"`
}

// viewer counts what a player could have shown.
type viewer struct {
	Joined  float64   `json:"joined_s"`
	First   float64   `json:"first_picture_s"` // after the connection; -1: none
	Packets int       `json:"packets"`
	Lost    int       `json:"lost_packets"` // never came, or too late
	Shown   int       `json:"pictures"`
	Freezes []freeze  `json:"freezes"`
	KBits   []float64 `json:"kbit_by_second"`

	o         *options
	mu        sync.Mutex
	begun     bool
	next      uint16
	waiting   map[uint16]*rtp.Packet
	holeSince time.Time
	broken    bool // pictures cannot be decoded until a key picture
	lastShown time.Time
	gaps      []float64
	ended     bool
}

func (v *viewer) now() float64 { return time.Since(v.o.epoch).Seconds() }

// take puts a packet in its place.
func (v *viewer) take(p *rtp.Packet) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return
	}
	v.Packets++
	second := int(v.now())
	for len(v.KBits) <= second {
		v.KBits = append(v.KBits, 0)
	}
	v.KBits[second] += float64(len(p.Payload)) * 8 / 1000
	if !v.begun {
		v.begun, v.next, v.broken = true, p.SequenceNumber, true
	}
	if int16(p.SequenceNumber-v.next) < 0 {
		return // too late, or twice
	}
	v.waiting[p.SequenceNumber] = p
	v.feed()
}

// feed takes what is complete; what is missing for too long is given up.
func (v *viewer) feed() {
	for len(v.waiting) > 0 {
		p := v.waiting[v.next]
		if p == nil {
			if v.holeSince.IsZero() {
				v.holeSince = time.Now()
			}
			if time.Since(v.holeSince) < patience {
				return
			}
			v.Lost++
			v.broken = true
			v.next++
			continue
		}
		v.holeSince = time.Time{}
		delete(v.waiting, v.next)
		v.next++
		if v.broken && media.BeginsKey(p.Payload) {
			v.broken = false
		}
		if p.Marker && !v.broken {
			v.show()
		}
	}
}

func (v *viewer) show() {
	now := time.Now()
	v.Shown++
	if v.lastShown.IsZero() {
		v.First = v.now() - v.Joined
	} else {
		v.gap(now)
	}
	v.lastShown = now
}

// gap judges the time since the last picture.
func (v *viewer) gap(now time.Time) {
	gap := now.Sub(v.lastShown).Seconds()
	if len(v.gaps) == freezeMean {
		sum := 0.0
		for _, g := range v.gaps {
			sum += g
		}
		mean := sum / freezeMean
		if gap > math.Max(freezeTimes*mean, mean+freezeMore) {
			v.Freezes = append(v.Freezes, freeze{v.now() - gap, gap})
		}
		v.gaps = v.gaps[1:]
	}
	v.gaps = append(v.gaps, gap)
}

func (v *viewer) watch(o *options, number int) error {
	pc, err := newPeer()
	if err != nil {
		return err
	}
	defer pc.Close()
	if o.livekit == "" && o.janus == 0 {
		if _, err := pc.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo, webrtc.RTPTransceiverInit{
			Direction: webrtc.RTPTransceiverDirectionRecvonly,
		}); err != nil {
			return err
		}
	}
	pc.OnTrack(func(t *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			p, _, err := t.ReadRTP()
			if err != nil {
				return
			}
			v.take(p)
		}
	})
	share := float64(number) / float64(max(o.count, 1))
	time.Sleep(time.Until(o.at(o.from + share*o.spread)))
	v.Joined = v.now()
	ended := make(<-chan error)
	switch {
	case o.janus != 0:
		err = viewJanus(o, pc)
	case o.livekit == "":
		err = join(pc, "http://"+o.server+"/whep")
	default:
		var p *participant
		if p, err = joinLiveKit(o, pc, fmt.Sprintf("%s%d", o.name, number), false); err == nil {
			ended = p.ended
			defer p.leave()
		}
	}
	if err != nil {
		return fmt.Errorf("viewer %d: %w", number, err)
	}
	for left := true; left; {
		select {
		case <-time.After(min(time.Until(o.at(o.until)), time.Second)):
			left = time.Now().Before(o.at(o.until))
			v.tell(number)
		case err := <-ended:
			return fmt.Errorf("viewer %d: %w", number, err)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	if !v.lastShown.IsZero() {
		v.gap(time.Now()) // one that lasts to the end
	}
	return nil
}

// tell prints what came in the last whole second, if that is wanted.
func (v *viewer) tell(number int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := int(v.now()) - 1; v.o.tell && n >= 0 {
		kbit := 0.0
		if n < len(v.KBits) {
			kbit = v.KBits[n]
		}
		fmt.Printf("{\"viewer\": %d, \"second\": %d, \"kbit\": %.1f}\n", number, n, kbit)
	}
}

func view(o *options) error {
	viewers := make([]*viewer, o.count)
	failed := make(chan error, o.count)
	for i := range viewers {
		viewers[i] = &viewer{
			o: o, First: -1, waiting: map[uint16]*rtp.Packet{}, Freezes: []freeze{}, KBits: []float64{},
		}
		go func() { failed <- viewers[i].watch(o, i) }()
	}
	for range viewers {
		if err := <-failed; err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]any{"viewers": viewers})
	if err != nil {
		return err
	}
	fmt.Println(string(text))
	return nil
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"testing"
	"time"

	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"paqm.example/connectors/share"
)

// fixed is an estimator that always says the same.
type fixed struct {
	cc.BandwidthEstimator
	bps int
}

func (f fixed) GetTargetBitrate() int { return f.bps }

// A layer that the publisher pauses is none that a viewer is left on, or waits for; one that comes back is.
func TestAPublisherPausesLayers(t *testing.T) {
	out, err := webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeH264}, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{gate: share.NewGate(), ceiling: 100_000_000}
	r := newRoom(s)
	s.room = r
	low, high := &layer{rid: "l"}, &layer{rid: "h"}
	r.layers = []*layer{low, high}
	v := &viewer{server: s, out: out, estimator: fixed{bps: 5_000_000}}
	r.add(v)
	now := time.Now()
	r.begun = now
	second := func(sizes map[*layer]int) {
		for l, size := range sizes {
			l.asked = time.Now() // there is nobody to ask
			if size != 0 {
				r.forward(l, &rtp.Packet{Payload: append([]byte{0x67}, make([]byte, size)...)}) // a key picture
			}
		}
		now = now.Add(window)
		r.measure(now)
		r.pick(v)
	}
	expect := func(what string, want *layer, sizes map[*layer]int) {
		t.Helper()
		for range 5 {
			second(sizes)
		}
		if v.now != want {
			t.Errorf("%s: %v", what, v.now)
		}
	}
	expect("both", high, map[*layer]int{low: 20_000, high: 100_000})
	expect("the higher one is paused", low, map[*layer]int{low: 20_000, high: 0})
	expect("both again", high, map[*layer]int{low: 20_000, high: 100_000})
	expect("the lower one is paused", high, map[*layer]int{low: 0, high: 100_000})
	expect("both are", high, map[*layer]int{low: 0, high: 0})
	expect("one comes back", low, map[*layer]int{low: 20_000, high: 0})
}

// Where no router speaks the ceiling holds, too.
func TestCeilingWithoutAdvice(t *testing.T) {
	r := newRoom(&server{gate: share.NewGate(), ceiling: 500_000})
	v := &viewer{server: r.server, estimator: fixed{bps: 5_000_000}}
	if next, _ := r.choose(v, []float64{150_000, 310_000, 650_000}, 0); next != 1 {
		t.Errorf("layer %d, expected the one of 310 kbit/s", next)
	}
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package livekit

// One viewer: by which addresses it is reached, and what its pictures may need.

import (
	"net/netip"
	"time"

	"github.com/livekit/livekit-server/pkg/rtc/types"
	"github.com/livekit/protocol/livekit"
	"github.com/pion/webrtc/v4"

	"paqm.example/client"
	"paqm.example/connectors/share"
)

const (
	// Of the rate at the IP level to that of RTP, as LiveKit counts it: UDP, IP and the tag of SRTP to
	// packets of 1200 bytes.
	headers = 1.05
	// What is granted beyond a layer's rate, which varies: part of the step to it.
	room = 0.1
	// Loss at which the rate falls in spite of advice, how far, at which it rises again, and how fast in
	// a second (draft-ietf-rmcat-gcc-02, section 6).
	lossHigh, lossFalls, lossLow, lossRises = 0.1, 0.5, 0.02, 1.08
	lossOver, lossTimes                     = 100, 2 // packets judged together, and how often: a change of layer loses some
	retell                                  = time.Second
	changed                                 = 0.02 // part by which a capacity must differ to be set
	leastBPS                                = 1    // LiveKit takes 0 as "your own estimate"
)

// viewer is a participant who may be sent pictures.
type viewer struct {
	to     types.LocalParticipant
	seen   time.Time
	number uint64 // of the client; 0: not registered
	pair   pair
	advice client.Advice
	share  share.Flow

	granted float64 // bit/s of pictures
	lossCap float64 // what loss allows; 0: no limit
	lossy   int     // how often together too much was lost
	set     float64 // capacity that LiveKit was told; 0: none
	told    time.Time
	tracks  int  // pictures when it was told
	opened  bool // nothing was heard of a router; LiveKit goes by itself
	falling bool // it was told to send less, and does not yet

	audio         float64 // bit/s of sound
	audioBytes    uint64
	packets, lost uint32 // of pictures
	counted       time.Time
}

// demand is what a viewer's pictures use now, and what the next step up takes.
type demand struct {
	used, step float64 // bit/s; step 0: there is none
	tracks     int
}

// pair is where packets to a viewer come from and go to.
type pair struct {
	port uint16 // on this host, whatever its address
	to   netip.AddrPort
}

// selected finds the pair by which pictures are sent; ok: there is one, over UDP and without relay,
// whose packets have other addresses on the way.
func selected(infos []*types.ICEConnectionInfo) (found pair, ok bool) {
	var way *types.ICEConnectionInfo
	for _, info := range infos { // a client of one transport has the publisher's alone
		if way == nil || info.Transport == livekit.SignalTarget_SUBSCRIBER {
			way = info
		}
	}
	if way == nil || way.Type != types.ICEConnectionTypeUDP {
		return found, false
	}
	newest := 0
	for _, one := range way.Local {
		if c := one.Local; c != nil && one.SelectedOrder > newest && c.Protocol == webrtc.ICEProtocolUDP {
			newest, found.port = one.SelectedOrder, c.Port
			if c.RelatedPort != 0 && c.Typ != webrtc.ICECandidateTypeHost { // the port on this host
				found.port = c.RelatedPort
			}
			ok = c.Typ != webrtc.ICECandidateTypeRelay
		}
	}
	newest = 0
	for _, one := range way.Remote {
		if c := one.Remote; c != nil && one.SelectedOrder > newest {
			newest = one.SelectedOrder
			address, err := netip.ParseAddr(c.Address())
			if err != nil || c.Port() < 1 || c.Port() > 65535 {
				return pair{}, false
			}
			found.to = netip.AddrPortFrom(address.Unmap().WithZone(""), uint16(c.Port()))
		}
	}
	return found, ok && found.port != 0 && found.to.IsValid()
}

// demand asks LiveKit.
func (v *viewer) demand() demand {
	d := demand{}
	for _, track := range v.to.GetSubscribedTracks() {
		down := track.DownTrack()
		if !track.IsBound() || down == nil || down.Kind() != webrtc.RTPCodecTypeVideo {
			continue // before it is bound, it has no layers to ask for
		}
		d.tracks++
		d.used += float64(down.BandwidthRequested())
		if next, ok := down.GetNextHigherTransition(false); ok && next.BandwidthDelta > 0 {
			if step := float64(next.BandwidthDelta); d.step == 0 || step < d.step {
				d.step = step
			}
		}
	}
	return d
}

// count measures sound and loss, once in a second.
func (v *viewer) count(now time.Time) {
	past := now.Sub(v.counted).Seconds()
	if past < 1 {
		return
	}
	var bytes uint64
	var packets, lost uint32
	for _, track := range v.to.GetSubscribedTracks() {
		down := track.DownTrack()
		if !track.IsBound() || down == nil {
			continue
		}
		stats := down.GetTrackStats()
		if down.Kind() == webrtc.RTPCodecTypeAudio {
			bytes += stats.GetBytes() + stats.GetHeaderBytes()
		} else {
			packets += stats.GetPackets()
			lost += stats.GetPacketsLost()
		}
	}
	first := v.counted.IsZero()
	if bytes >= v.audioBytes && !first {
		v.audio = 8 * float64(bytes-v.audioBytes) / past
	}
	if first || packets < v.packets || lost < v.lost { // other tracks than before
		v.packets, v.lost = packets, lost
	} else if packets-v.packets >= lossOver {
		v.onLoss(float64(lost-v.lost) / float64(packets-v.packets))
		v.packets, v.lost = packets, lost
	}
	v.counted, v.audioBytes = now, bytes
}

// onLoss is told the part that was lost of the last packets. LiveKit knows its own estimate or a capacity
// that it is given, so while there is advice the safety net is here.
func (v *viewer) onLoss(part float64) {
	if part > lossHigh {
		v.lossy++
	} else {
		v.lossy = 0
	}
	switch {
	case v.lossy >= lossTimes && v.set != 0:
		from := v.set
		if v.lossCap != 0 {
			from = min(from, v.lossCap)
		}
		v.lossCap = from * (1 - lossFalls*min(part, 1))
	case part < lossLow && v.lossCap != 0:
		if v.lossCap *= lossRises; v.lossCap > 2*v.granted {
			v.lossCap = 0
		}
	}
}

// capacity is what the viewer's pictures may need: no more than the advice, and up a step when the
// gate says so.
func (v *viewer) capacity(gate *share.Gate, d demand, now time.Time) float64 {
	budget := max(float64(v.advice.RateBPS)/headers-v.audio, leastBPS)
	next := 0
	if above := d.used > budget; !above || !v.falling { // the gate counts falls
		v.falling = above
		rates := []float64{0, d.used}
		if d.step > 0 {
			rates = append(rates, d.used+d.step)
		}
		next = gate.Layer(&v.share, share.Advice{
			RouterID: v.advice.RouterID, RateBPS: budget, Period: v.advice.Period,
		}, rates, 1, now)
	}
	switch {
	case d.used == 0: // nothing is sent yet: as it began
	case next == 0:
		v.granted = budget
	case next == 2:
		v.granted = d.used + d.step*(1+room)
	case d.step > 0: // between the two, so that neither variation changes the layer
		v.granted = d.used + d.step/2
	default:
		v.granted = max(v.granted, d.used*(1+room))
	}
	capacity := min(v.granted, budget)
	if v.lossCap != 0 {
		capacity = min(capacity, v.lossCap)
	}
	return max(capacity, leastBPS)
}

// differs says whether LiveKit is to be told. It lets a new track begin with what it likes best, whatever
// capacity it was given before, and does not look again when a layer has grown.
func (v *viewer) differs(capacity float64, d demand, now time.Time) bool {
	if v.set == 0 || d.tracks != v.tracks {
		return true
	}
	if d.used > max(capacity, v.set)*(1+changed) && now.Sub(v.told) >= retell {
		return true
	}
	off := capacity/v.set - 1
	return off > changed || off < -changed
}

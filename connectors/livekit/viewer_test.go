// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package livekit

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/livekit/livekit-server/pkg/rtc"
	"github.com/livekit/livekit-server/pkg/rtc/types"
	"github.com/livekit/protocol/livekit"
	"github.com/pion/ice/v4"
	"github.com/pion/webrtc/v4"

	"paqm.example/client"
	"paqm.example/connectors/share"
)

func way(t testing.TB, target livekit.SignalTarget, kind types.ICEConnectionType, remote string,
	local ...webrtc.ICECandidate,
) *types.ICEConnectionInfo {
	info := &types.ICEConnectionInfo{Transport: target, Type: kind}
	for i := range local {
		info.Local = append(info.Local, &types.ICECandidateExtended{Local: &local[i], SelectedOrder: i + 1})
	}
	if remote != "" {
		candidate, err := ice.UnmarshalCandidate(remote)
		if err != nil {
			t.Fatal(err)
		}
		info.Remote = append(info.Remote, &types.ICECandidateExtended{Remote: candidate, SelectedOrder: 1})
	}
	return info
}

func TestSelected(t *testing.T) {
	host := webrtc.ICECandidate{
		Typ: webrtc.ICECandidateTypeHost, Protocol: webrtc.ICEProtocolUDP, Address: "10.0.0.1", Port: 7882,
	}
	seen, relay := host, host
	seen.Typ, seen.Port, seen.RelatedPort = webrtc.ICECandidateTypeSrflx, 1000, 7882
	relay.Typ = webrtc.ICECandidateTypeRelay
	const (
		viewers, publishers = livekit.SignalTarget_SUBSCRIBER, livekit.SignalTarget_PUBLISHER
		four                = "1 1 udp 1 192.0.2.7 40000 typ host"
		six                 = "1 1 udp 1 2001:db8::7 40000 typ host"
		udp                 = types.ICEConnectionTypeUDP
	)
	for name, c := range map[string]struct {
		infos []*types.ICEConnectionInfo
		to    string // "": none
	}{
		"IPv4":          {[]*types.ICEConnectionInfo{way(t, viewers, udp, four, host)}, "192.0.2.7:40000"},
		"IPv6":          {[]*types.ICEConnectionInfo{way(t, viewers, udp, six, host)}, "[2001:db8::7]:40000"},
		"reflexive":     {[]*types.ICEConnectionInfo{way(t, viewers, udp, four, seen)}, "192.0.2.7:40000"},
		"one transport": {[]*types.ICEConnectionInfo{way(t, publishers, udp, four, host)}, "192.0.2.7:40000"},
		"the viewer's of two": {[]*types.ICEConnectionInfo{
			way(t, publishers, udp, six, host), way(t, viewers, udp, four, host),
		}, "192.0.2.7:40000"},
		"the later of two": {[]*types.ICEConnectionInfo{way(t, viewers, udp, four, relay, host)},
			"192.0.2.7:40000"},
		"nothing":  {nil, ""},
		"relay":    {[]*types.ICEConnectionInfo{way(t, viewers, udp, four, relay)}, ""},
		"TCP":      {[]*types.ICEConnectionInfo{way(t, viewers, types.ICEConnectionTypeTCP, four, host)}, ""},
		"one end":  {[]*types.ICEConnectionInfo{way(t, viewers, udp, "", host)}, ""},
		"no local": {[]*types.ICEConnectionInfo{way(t, viewers, udp, four)}, ""},
	} {
		found, ok := selected(c.infos)
		if ok != (c.to != "") || ok && (found.port != 7882 || found.to.String() != c.to) {
			t.Errorf("%s: %v %v", name, found, ok)
		}
	}
}

// now and then: moments of a test.
var begin = time.Unix(1_700_000_000, 0)

func (v *viewer) hears(bps uint64) {
	v.advice = client.Advice{RateBPS: bps, RouterID: 1, Period: 250 * time.Millisecond}
}

func TestFallAtOnceRiseBySteps(t *testing.T) {
	v, gate := &viewer{granted: 300_000}, share.NewGate()
	expect := func(what string, d demand, after time.Duration, want float64) {
		t.Helper()
		if got := v.capacity(gate, d, begin.Add(after)); got < want*0.999 || got > want*1.001 {
			t.Errorf("%s: %.0f, expected %.0f", what, got, want)
		}
	}
	v.hears(1_050_000)
	expect("before a picture", demand{}, 0, 300_000)
	expect("a step, granted", demand{150_000, 160_000, 1}, 0, 150_000+1.1*160_000)
	expect("it is sent", demand{310_000, 0, 1}, time.Second, 326_000*1.0+15_000)
	v.hears(210_000)
	expect("a fall", demand{310_000, 340_000, 1}, 2*time.Second, 200_000)
	expect("it does not follow yet", demand{310_000, 340_000, 1}, 2*time.Second, 200_000)
	expect("it follows", demand{150_000, 160_000, 1}, 2*time.Second, 200_000)
	v.hears(1_050_000)
	expect("not again so soon", demand{150_000, 160_000, 1}, 2500*time.Millisecond, 230_000)
	expect("a second later", demand{150_000, 160_000, 1}, 3100*time.Millisecond, 150_000+1.1*160_000)
	v.audio = 900_000
	expect("sound takes its part", demand{150_000, 160_000, 1}, 4*time.Second, 100_000)
	v.audio = 5e6
	expect("LiveKit takes 0 as no limit", demand{150_000, 0, 1}, 5*time.Second, leastBPS)
}

func TestLoss(t *testing.T) {
	v, gate := &viewer{granted: 300_000, set: 1e6}, share.NewGate()
	v.hears(10_500_000)
	v.onLoss(0.05)
	if v.lossCap != 0 {
		t.Error("5 % lowers it")
	}
	v.onLoss(0.2)
	v.onLoss(0.05)
	v.onLoss(0.2)
	if v.lossCap != 0 {
		t.Error("a change of layer lowers it")
	}
	v.onLoss(0.2)
	if got := v.capacity(gate, demand{used: 2e6, tracks: 1}, begin); v.lossCap != 900_000 || got != 900_000 {
		t.Error(v.lossCap, got)
	}
	v.onLoss(1)
	if v.lossCap != 450_000 {
		t.Error(v.lossCap)
	}
	for range 100 {
		v.onLoss(0)
	}
	if v.lossCap != 0 {
		t.Error("it stays low: ", v.lossCap)
	}
}

func TestWhatIsTold(t *testing.T) {
	v := &viewer{set: 1e6, tracks: 1, told: begin}
	for _, c := range []struct {
		capacity float64
		d        demand
		told     bool
	}{
		{1e6, demand{used: 9e5, tracks: 1}, false},
		{1.01e6, demand{used: 9e5, tracks: 1}, false},
		{0.9e6, demand{used: 9e5, tracks: 1}, true},
		{1.1e6, demand{used: 9e5, tracks: 1}, true},
		{1e6, demand{used: 9e5, tracks: 2}, true}, // a new picture, with what LiveKit likes best
		{1e6, demand{used: 2e6, tracks: 1}, true}, // it has grown
	} {
		if v.differs(c.capacity, c.d, begin.Add(time.Second)) != c.told {
			t.Error(c)
		}
	}
	if v.differs(1e6, demand{used: 2e6, tracks: 1}, begin.Add(tick)) {
		t.Error("it is told again at every look")
	}
}

// told is a participant whose server remembers the last capacity.
type told struct {
	types.LocalParticipant
	capacity int64
}

func (p *told) SetSubscriberChannelCapacity(bps int64) { p.capacity = bps }
func (p *told) Identity() livekit.ParticipantIdentity  { return "a" }
func (p *told) ID() livekit.ParticipantID              { return "a" }

// Who ends the follower while the server goes on has LiveKit's own estimate decide again.
func TestEnd(t *testing.T) {
	f, err := NewFollower(Options{
		Socket: filepath.Join(t.TempDir(), "none"), Ceiling: 1e6,
		Names: func(context.Context) ([]string, error) { return nil, nil },
		Room:  func(context.Context, livekit.RoomName) *rtc.Room { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	advised, fresh, alone := &told{capacity: 2e5}, &told{capacity: 3e5}, &told{capacity: -1}
	f.viewers["a"] = &viewer{to: advised, number: 1, set: 2e5, opened: true}
	f.viewers["a"].hears(210_000)
	f.viewers["b"] = &viewer{to: fresh, set: 3e5}
	f.viewers["c"] = &viewer{to: alone, opened: true}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	f.Run(ctx)
	if advised.capacity != 0 || fresh.capacity != 0 || alone.capacity != -1 {
		t.Error(advised.capacity, fresh.capacity, alone.capacity)
	}
}

func TestOptions(t *testing.T) {
	names := func(context.Context) ([]string, error) { return nil, nil }
	none := func(context.Context, livekit.RoomName) *rtc.Room { return nil }
	for name, o := range map[string]Options{
		"no ceiling":  {Names: names, Room: none},
		"a high one":  {Ceiling: client.RateMax + 1, Names: names, Room: none},
		"a low one":   {Ceiling: 1000, Start: 2000, Names: names, Room: none},
		"no rooms":    {Ceiling: 1e6},
		"a long path": {Ceiling: 1e6, Names: names, Room: none, Socket: string(make([]byte, 200))},
	} {
		if _, err := NewFollower(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

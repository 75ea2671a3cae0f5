// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// Package pion lets senders on pion follow P-AQM routers: a bandwidth estimator in the place of
// pion's own, which stays below it as the safety net.
//
//	follower, _ := paqm.NewFollower("")
//	bwe, _ := cc.NewInterceptor(follower.Factory(500_000))
//	bwe.OnNewPeerConnection(func(id string, e cc.BandwidthEstimator) { estimator = e.(*paqm.Estimator) })
//	registry.Add(bwe)
//	...
//	estimator.FollowPeer(peerConnection, 100_000, 3_000_000)
//
// GetTargetBitrate is then the router's advice less headers while there is any, and the estimate of
// Google congestion control while there is none.
package pion

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"paqm.example/client"
)

const (
	// Bytes of a packet beside RTP: UDP, the tag of SRTP (AES-GCM, RFC 7714, the longer one).
	udpHeader, srtpTag, ipv4Header, ipv6Header = 8, 16, 20, 40
	// Loss at which the estimate of the safety net counts in spite of advice, where Google congestion
	// control falls by itself (draft-ietf-rmcat-gcc-02, section 6).
	lossLimit = 0.1
	// Packets that the mean overhead is taken over, about.
	overheadMemory = 100
	routersMax     = 256 // that are remembered
)

// Follower is a connection to paqmd for any number of estimators.
type Follower struct {
	client *client.Client
	cancel context.CancelFunc

	mu   sync.Mutex
	mine map[uint64]*Estimator
	lots map[uint64]*lot // by router
}

// NewFollower opens a connection to paqmd; path "": $PAQM_SOCKET, else its default. paqmd need not
// be there yet.
func NewFollower(path string) (*Follower, error) {
	c, err := client.Open(path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &Follower{client: c, cancel: cancel, mine: map[uint64]*Estimator{}, lots: map[uint64]*lot{}}
	go f.run(ctx)
	return f, nil
}

// Close ends it; its estimators go on by their own estimate.
func (f *Follower) Close() error {
	f.cancel()
	f.mu.Lock()
	mine := slices.Collect(maps.Values(f.mine))
	f.mu.Unlock()
	for _, e := range mine {
		e.Unfollow()
	}
	return f.client.Close()
}

func (f *Follower) run(ctx context.Context) {
	for {
		advice, err := f.client.Next(ctx)
		if err != nil {
			return
		}
		f.mu.Lock()
		e := f.mine[advice.Flow]
		f.mu.Unlock()
		if e != nil {
			e.onAdvice(advice)
		}
	}
}

// Factory makes estimators for cc.NewInterceptor. initial is where their own estimate begins, bit/s.
func (f *Follower) Factory(initial int) cc.BandwidthEstimatorFactory {
	return func() (cc.BandwidthEstimator, error) { return newEstimator(f, initial) }
}

// Estimator is a cc.BandwidthEstimator that follows advice.
type Estimator struct {
	follower *Follower
	own      *gcc.SendSideBWE
	pacer    *pacer

	mu       sync.Mutex
	flow     uint64 // of the client; 0: none
	local    netip.AddrPort
	remote   netip.AddrPort
	ipHeader int
	advice   client.Advice
	packets  float64 // decaying sums of what was sent
	payload  float64
	headers  float64
	changed  func(int)
}

func newEstimator(f *Follower, initial int) (*Estimator, error) {
	e := &Estimator{follower: f, pacer: newPacer(initial), ipHeader: ipv4Header}
	own, err := gcc.NewSendSideBWE(gcc.SendSideBWEInitialBitrate(initial),
		gcc.SendSideBWEPacer(&quiet{e.pacer, e}))
	if err != nil {
		return nil, err
	}
	e.own = own
	own.OnTargetBitrateChange(func(int) { e.update() })
	return e, nil
}

// quiet is the pacer as the estimator below sees it: while there is advice it sets no rate.
type quiet struct {
	*pacer
	e *Estimator
}

func (q *quiet) SetTargetBitrate(bps int) {
	if !q.e.Following() {
		q.pacer.SetTargetBitrate(bps * 3 / 2) // as pion's own pacer does
	}
}

// Follow registers the packets from local to remote with paqmd: all of them, whatever their SSRC, as
// routers give streams of one transport (BUNDLE) a rate in common. An unspecified local address: any.
// Limits are in bit/s at the IP level. Errors are those of client.Add; then nothing is followed.
func (e *Estimator) Follow(local, remote netip.AddrPort, floorBPS, ceilingBPS uint64) error {
	if e.follower == nil {
		return nil
	}
	e.mu.Lock()
	number, same := e.flow, e.local == local && e.remote == remote
	e.mu.Unlock()
	if number != 0 && same { // ICE tells of the same way anew, after a restart, too
		return e.follower.client.Limits(number, floorBPS, ceilingBPS)
	}
	e.Unfollow() // first: paqmd gives the same packets to one flow only
	number, err := e.follower.client.Add(client.Flow{
		Source: local, Destination: remote, FloorBPS: floorBPS, CeilingBPS: ceilingBPS,
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.flow, e.local, e.remote = number, local, remote
	if remote.Addr().Unmap().Is6() {
		e.ipHeader = ipv6Header
	} else {
		e.ipHeader = ipv4Header
	}
	e.mu.Unlock()
	e.follower.mu.Lock()
	e.follower.mine[number] = e
	e.follower.mu.Unlock()
	return nil
}

// FollowPeer follows the selected candidate pair of a peer connection, now and when it changes. A
// pair through a relay is not followed: its packets have other addresses on the way.
func (e *Estimator) FollowPeer(pc *webrtc.PeerConnection, floorBPS, ceilingBPS uint64) {
	transport := pc.SCTP().Transport().ICETransport()
	follow := func(pair *webrtc.ICECandidatePair) {
		if pair == nil || pair.Local.Typ == webrtc.ICECandidateTypeRelay ||
			pair.Local.Protocol != webrtc.ICEProtocolUDP {
			e.Unfollow()
			return
		}
		remote, err := netip.ParseAddr(pair.Remote.Address)
		if err != nil {
			e.Unfollow()
			return
		}
		port := pair.Local.Port
		if pair.Local.RelatedPort != 0 { // reflexive: the port on this host
			port = pair.Local.RelatedPort
		}
		_ = e.Follow(netip.AddrPortFrom(netip.Addr{}, port),
			netip.AddrPortFrom(remote, pair.Remote.Port), floorBPS, ceilingBPS)
	}
	transport.OnSelectedCandidatePairChange(follow)
	if pair, err := transport.GetSelectedCandidatePair(); err == nil && pair != nil {
		follow(pair)
	}
}

// Unfollow gives the flow up; if there was advice, the application is told the estimate below.
func (e *Estimator) Unfollow() {
	if e.unfollow() {
		e.update()
	}
}

// unfollow says whether there was advice.
func (e *Estimator) unfollow() bool {
	e.mu.Lock()
	number, had := e.flow, e.advice.RateBPS != 0
	e.flow, e.advice = 0, client.Advice{}
	e.mu.Unlock()
	if number == 0 {
		return false
	}
	e.pacer.join(nil)
	e.follower.mu.Lock()
	delete(e.follower.mine, number)
	e.follower.mu.Unlock()
	_ = e.follower.client.Remove(number)
	return had
}

// behind is what flows behind a router are sent with.
func (f *Follower) behind(router uint64) *lot {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lots[router] == nil {
		if len(f.lots) >= routersMax { // of long ago, most of them; who uses one keeps it
			f.lots = map[uint64]*lot{}
		}
		f.lots[router] = &lot{}
	}
	return f.lots[router]
}

func (e *Estimator) onAdvice(a client.Advice) {
	e.mu.Lock()
	mine := a.Flow == e.flow // else it was given up meanwhile
	if mine {
		e.advice = a
	}
	e.mu.Unlock()
	if !mine {
		return
	}
	if a.RateBPS != 0 {
		e.pacer.join(e.follower.behind(a.RouterID))
	} else {
		e.pacer.join(nil)
	}
	e.update()
}

// update tells pacer and application after a change.
func (e *Estimator) update() {
	target := e.GetTargetBitrate()
	e.mu.Lock()
	changed, following, rate := e.changed, e.advice.RateBPS != 0, e.advice.RateBPS
	e.mu.Unlock()
	if following {
		e.pacer.SetTargetBitrate(int(rate))
	} else {
		e.pacer.SetTargetBitrate(target * 3 / 2)
	}
	if changed != nil {
		changed(target)
	}
}

// Advice is the newest advice; RateBPS 0: there is none in force.
func (e *Estimator) Advice() client.Advice {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.advice
}

// Following says whether there is advice in force.
func (e *Estimator) Following() bool { return e.Advice().RateBPS != 0 }

// Media is the part of a rate at the IP level that is payload of RTP, with packets as of late.
func (e *Estimator) Media(bps float64) float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	payload, all := e.payload, e.payload+e.headers
	if e.packets < 1 { // packets of 1200 bytes
		payload, all = 1150, 1150+12+8+float64(e.ipHeader+udpHeader+srtpTag)
	}
	return bps * payload / all
}

// GetTargetBitrate is the rate for payload, bit/s.
func (e *Estimator) GetTargetBitrate() int {
	advice := e.Advice()
	own := e.own.GetTargetBitrate()
	if advice.RateBPS == 0 {
		return own
	}
	target := int(e.Media(float64(advice.RateBPS)))
	if loss, _ := e.own.GetStats()["averageLoss"].(float64); loss > lossLimit && own < target {
		return own
	}
	return target
}

// OnTargetBitrateChange sets what is called when the target changes.
func (e *Estimator) OnTargetBitrateChange(f func(int)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changed = f
}

// GetStats has what pion's own estimator tells, and the advice.
func (e *Estimator) GetStats() map[string]any {
	stats, a := e.own.GetStats(), e.Advice()
	stats["paqmCause"] = a.Cause.String()
	stats["paqmRate"] = int(a.RateBPS)
	stats["paqmRouter"] = a.RouterID
	stats["paqmPoliced"] = a.Policed
	stats["paqmOverload"] = a.Overload
	return stats
}

// AddStream is called by pion for each stream that is sent.
func (e *Estimator) AddStream(info *interceptor.StreamInfo, w interceptor.RTPWriter) interceptor.RTPWriter {
	counted := e.own.AddStream(info, interceptor.RTPWriterFunc(
		func(h *rtp.Header, payload []byte, a interceptor.Attributes) (int, error) {
			e.count(h.MarshalSize(), len(payload))
			return w.Write(h, payload, a)
		}))
	e.pacer.also(info.SSRC, info.SSRCRetransmission)
	return counted
}

func (e *Estimator) count(header, payload int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	const keep = 1 - 1.0/overheadMemory
	e.packets = keep*e.packets + 1
	e.payload = keep*e.payload + float64(payload)
	e.headers = keep*e.headers + float64(header+srtpTag+udpHeader+e.ipHeader)
}

// WriteRTCP is called by pion with what receivers report.
func (e *Estimator) WriteRTCP(packets []rtcp.Packet, a interceptor.Attributes) error {
	return e.own.WriteRTCP(packets, a)
}

// Close ends it.
func (e *Estimator) Close() error {
	e.unfollow()
	return e.own.Close()
}

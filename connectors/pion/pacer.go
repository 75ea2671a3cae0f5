// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package pion

import (
	"io"
	"maps"
	"sync"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
)

const (
	// No packet waits longer, about: a key picture beyond the rate goes out faster.
	longestWait = 100 * time.Millisecond
	// Packets that may go at once; timers are not exact.
	burst = 2 * time.Millisecond
)

// pacer sends packets one by one at a rate, those of a picture over its interval: what comes in one
// lot stands in the queue of the router as one.
type pacer struct {
	mu      sync.Mutex
	bps     float64
	streams map[uint32]interceptor.RTPWriter
	queue   []packet
	bytes   int
	free    time.Time // when the link of this rate is free again
	lot     *lot      // all flows behind the same router; nil: not known
	slot    time.Time // the first packet's in it; zero: none
	wake    chan struct{}
	done    chan struct{}
	once    sync.Once
}

type packet struct {
	header     rtp.Header
	payload    []byte
	attributes interceptor.Attributes
}

func (p *packet) size() int { return p.header.MarshalSize() + len(p.payload) }

func newPacer(bps int) *pacer {
	p := &pacer{
		bps:     float64(bps),
		streams: map[uint32]interceptor.RTPWriter{},
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	go p.run()
	return p
}

// AddStream names where packets of an SSRC go.
func (p *pacer) AddStream(ssrc uint32, w interceptor.RTPWriter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[ssrc] = w
}

// also says that packets of another SSRC go where those of the first go: retransmissions (RFC 4588).
func (p *pacer) also(ssrc, other uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if other != 0 {
		p.streams[other] = p.streams[ssrc]
	}
}

// join names the flows that packets are spread with.
func (p *pacer) join(l *lot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lot == l {
		return
	}
	unslotted := p.bytes
	if !p.slot.IsZero() {
		unslotted -= p.queue[0].size()
	}
	if p.lot != nil {
		p.lot.leave(unslotted)
	}
	if l != nil {
		l.come(time.Now(), p.bytes)
	}
	p.lot, p.slot = l, time.Time{}
}

// SetTargetBitrate sets the rate.
func (p *pacer) SetTargetBitrate(bps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bps > 0 {
		p.bps = float64(bps)
	}
}

// Write takes a packet, of which the caller may use the buffer again.
func (p *pacer) Write(h *rtp.Header, payload []byte, a interceptor.Attributes) (int, error) {
	select {
	case <-p.done:
		return 0, io.ErrClosedPipe
	default:
	}
	one := packet{h.Clone(), append([]byte(nil), payload...), maps.Clone(a)}
	p.mu.Lock()
	p.queue = append(p.queue, one)
	p.bytes += one.size()
	if p.lot != nil {
		p.lot.come(time.Now(), one.size())
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return h.MarshalSize() + len(payload), nil
}

// Close ends it; packets that wait are lost.
func (p *pacer) Close() error {
	p.once.Do(func() {
		close(p.done)
		p.join(nil)
	})
	return nil
}

func (p *pacer) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := p.send(time.Now())
		if wait < 0 {
			wait = time.Hour
		}
		timer.Reset(wait)
		select {
		case <-p.wake:
		case <-timer.C:
		case <-p.done:
			return
		}
	}
}

// send sends what is due; when the next packet is, negative: there is none.
func (p *pacer) send(now time.Time) time.Duration {
	for {
		p.mu.Lock()
		if len(p.queue) == 0 {
			p.mu.Unlock()
			return -1
		}
		if p.free.Before(now) {
			p.free = now
		}
		if wait := p.free.Sub(now); wait > burst {
			p.mu.Unlock()
			return wait
		}
		one := p.queue[0]
		size := one.size()
		if p.lot != nil {
			if p.slot.IsZero() {
				p.slot = p.lot.slot(now, size)
			}
			if wait := p.slot.Sub(now); wait > burst/4 {
				p.mu.Unlock()
				return wait
			}
			p.slot = time.Time{}
		}
		p.queue = p.queue[1:]
		bps := p.bps
		if least := float64(p.bytes) * 8 / longestWait.Seconds(); bps < least {
			bps = least
		}
		p.bytes -= size
		p.free = p.free.Add(time.Duration(float64(size) * 8 / bps * float64(time.Second)))
		w := p.streams[one.header.SSRC]
		p.mu.Unlock()
		if w != nil {
			_, _ = w.Write(&one.header, one.payload, one.attributes)
		}
	}
}

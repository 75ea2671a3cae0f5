// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package pion

import (
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
)

// still is a pacer without its goroutine: the test is its clock.
func still(bps float64) (*pacer, *[]uint16) {
	var sent []uint16
	p := &pacer{bps: bps, streams: map[uint32]interceptor.RTPWriter{}, wake: make(chan struct{}, 1),
		done: make(chan struct{})}
	p.AddStream(1, interceptor.RTPWriterFunc(
		func(h *rtp.Header, payload []byte, _ interceptor.Attributes) (int, error) {
			sent = append(sent, h.SequenceNumber)
			return len(payload), nil
		}))
	return p, &sent
}

func put(t *testing.T, p *pacer, ssrc uint32, number uint16) {
	t.Helper()
	h := &rtp.Header{Version: 2, SSRC: ssrc, SequenceNumber: number}
	if _, err := p.Write(h, make([]byte, 988), nil); err != nil { // 1000 bytes with the header
		t.Fatal(err)
	}
}

func TestPacketsAreSpread(t *testing.T) {
	p, sent := still(1e6) // a packet every 8 ms
	for n := uint16(0); n < 5; n++ {
		put(t, p, 1, n)
	}
	now := time.Unix(1, 0)
	for n := 1; n <= 5; n++ {
		wait := p.send(now)
		if len(*sent) != n {
			t.Fatalf("%d packets after %d waits", len(*sent), n-1)
		}
		if n < 5 && (wait < 7*time.Millisecond || wait > 9*time.Millisecond) {
			t.Fatalf("waits %v, expected 8 ms", wait)
		}
		if n == 5 && wait >= 0 {
			t.Fatal("waits for nothing")
		}
		now = now.Add(wait)
	}
	for n, number := range *sent {
		if int(number) != n {
			t.Fatalf("order %v", *sent)
		}
	}
}

// What a slow rate cannot carry goes out within longestWait, about: it must not pile up.
func TestNothingWaitsForLong(t *testing.T) {
	p, sent := still(1e4)
	for n := uint16(0); n < 50; n++ {
		put(t, p, 1, n)
	}
	begin := time.Unix(1, 0)
	now := begin
	for len(*sent) < 45 { // the last ones see an empty queue, and the slow rate
		now = now.Add(max(p.send(now), time.Microsecond))
	}
	if took := now.Sub(begin); took > 4*longestWait {
		t.Fatalf("took %v", took)
	}
}

func TestRetransmissionsGoWhereTheirStreamGoes(t *testing.T) {
	p, sent := still(1e6)
	p.also(1, 2)
	put(t, p, 2, 7)
	put(t, p, 3, 8) // of nobody
	p.send(time.Unix(1, 0))
	p.send(time.Unix(2, 0))
	if len(*sent) != 1 || (*sent)[0] != 7 {
		t.Fatal(*sent)
	}
}

// Fifty viewers are sent the same picture at the same moment: it leaves over most of the time until
// the next one, and a key picture within the longest wait. Packets ask for their slots one after the
// other, each when the one before has left.
func TestALotIsSpread(t *testing.T) {
	const viewers, size, fps = 50, 1200, 24
	l, now, last := &lot{}, time.Unix(1, 0), time.Duration(0)
	picture := func(packets int) {
		for v := 0; v < packets; v++ {
			l.come(now, size)
		}
		at := now
		for v := 0; v < packets; v++ {
			at = l.slot(at, size)
		}
		last = at.Sub(now)
		now = now.Add(time.Second / fps)
	}
	for n := 0; n < 5*fps; n++ {
		picture(viewers)
	}
	if last < 20*time.Millisecond || last > 40*time.Millisecond {
		t.Errorf("the last viewer's packet leaves after %v", last)
	}
	picture(4 * viewers)
	if last < longestWait/2 || last > 2*longestWait {
		t.Errorf("a key picture leaves within %v", last)
	}
}

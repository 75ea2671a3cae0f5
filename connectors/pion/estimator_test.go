// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package pion

import (
	"encoding/binary"
	"net"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// paqmd is a stub in its place, which tells every flow that is registered 1 Mbit/s.
func paqmd(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return
		}
		defer conn.Close()
		told := make([]byte, 512)
		for {
			n, err := conn.Read(told)
			if err != nil || n == 0 {
				return
			}
			if n != 80 {
				continue
			}
			rate := make([]byte, 72) // paqm_ipc.h
			copy(rate, told[:4])
			rate[4], rate[5], rate[6] = 1, 3, byte(len(rate))
			copy(rate[8:16], told[72:80]) // the flow
			binary.NativeEndian.PutUint64(rate[16:], 1_000_000)
			rate[68], rate[70] = 1, 1
			if _, err := conn.Write(rate); err != nil {
				return
			}
		}
	}()
	return path
}

// pair is a follower and one estimator of it, and what has that follow a destination from port 4000.
func pair(t *testing.T) (*Follower, *Estimator, func(to string, ceiling uint64) error) {
	t.Helper()
	f, err := NewFollower(paqmd(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	e, err := newEstimator(f, 500_000)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return f, e, func(to string, ceiling uint64) error {
		local := netip.AddrPortFrom(netip.Addr{}, 4000)
		return e.Follow(local, netip.MustParseAddrPort(to), 0, ceiling)
	}
}

func following(t *testing.T, e *Estimator) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !e.Following(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no advice")
		}
	}
}

// A way that ICE tells of anew is the same flow: its advice holds.
func TestTheSameWayAnew(t *testing.T) {
	_, e, follow := pair(t)
	if err := follow("192.0.2.7:5000", 2_000_000); err != nil {
		t.Fatal(err)
	}
	following(t, e)
	if err := follow("192.0.2.7:5000", 3_000_000); err != nil || !e.Following() {
		t.Fatalf("error %v, following %v", err, e.Following())
	}
	if err := follow("192.0.2.8:5000", 2_000_000); err != nil || e.Following() && e.Advice().Flow == 1 {
		t.Fatalf("error %v, advice %v", err, e.Advice())
	}
	following(t, e)
	if err := follow("192.0.2.8:0", 2_000_000); err == nil || e.Following() {
		t.Fatalf("error %v, following %v", err, e.Following())
	}
}

// Who ends the follower, or gives a flow up, has the estimate below from then on, and the application is
// told so: it would else go on with advice that nothing ends any more.
func TestGivingUp(t *testing.T) {
	for name, end := range map[string]func(*Follower, *Estimator){
		"Follower.Close": func(f *Follower, _ *Estimator) { f.Close() },
		"Unfollow":       func(_ *Follower, e *Estimator) { e.Unfollow() },
	} {
		t.Run(name, func(t *testing.T) {
			f, e, follow := pair(t)
			if err := follow("192.0.2.7:5000", 2_000_000); err != nil {
				t.Fatal(err)
			}
			following(t, e)
			var told atomic.Int64
			e.OnTargetBitrateChange(func(bps int) { told.Store(int64(bps)) })
			end(f, e)
			if e.Following() {
				t.Errorf("it follows %v", e.Advice())
			}
			if own := int64(e.own.GetTargetBitrate()); told.Load() != own {
				t.Errorf("the application was told %d, the own estimate is %d", told.Load(), own)
			}
		})
	}
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package client

// Records of paqmd's socket (feedback-daemon/paqm_ipc.h): made and read, no input or output. They
// are in host byte order and only grow at their end: what is behind the known part is passed over.

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"syscall"
	"time"
	"unsafe"
)

const (
	magic     = 0x50514950
	version   = 1
	recordMax = 512 // bytes that a record may ever have

	// RateMax is what a message can say, bit/s.
	RateMax = 1_000_000_000_000

	kindRegister   = 1
	kindRegistered = 2
	kindRate       = 3
	kindUnregister = 4
	kindStatus     = 5

	headLen       = 8
	registerLen   = 80
	registeredLen = 24
	rateLen       = 72
	unregisterLen = 16
	statusLen     = 32

	flagOverload, flagPoliced, flagFinal, flagAuth = 1, 2, 4, 8
)

// host is the byte order of this machine: both ends of the socket are on it.
var host = func() binary.ByteOrder {
	one := uint16(1)
	if *(*byte)(unsafe.Pointer(&one)) == 1 {
		return binary.LittleEndian
	}
	return binary.BigEndian
}()

// Cause says where the advice for a flow comes from, or why there is none.
type Cause uint16

const (
	None    Cause = iota // no advice yet
	ERF                  // rate: from the absolute rate of a message
	ECF                  // rate: from the relative value of a message
	Expired              // the last router has fallen silent
)

// What this package says itself: paqmd has a byte for its causes.
const (
	Lost    Cause = 256 + iota // paqmd has been unreachable, or silent, for too long
	Refused                    // paqmd refused the flow: see Advice.Error
)

func (c Cause) String() string {
	switch c {
	case None:
		return "none"
	case ERF:
		return "erf"
	case ECF:
		return "ecf"
	case Expired:
		return "expired"
	case Lost:
		return "lost"
	case Refused:
		return "refused"
	}
	return fmt.Sprintf("other %d", uint16(c)) // of a later release; the rate counts
}

// Flow is a media flow as paqmd is told of it. Rates are in bit/s at the IP level.
type Flow struct {
	Source      netip.AddrPort // its address may be invalid or unspecified: any
	Destination netip.AddrPort
	SSRC        uint32        // of its RTP packets; 0: any
	FloorBPS    uint64        // advice is never below; 0: no floor
	CeilingBPS  uint64        // advice is never above; not 0
	GOP         time.Duration // how long the sender keeps a quantizer, for paqmctl
	Answer      time.Duration // how long it takes to follow advice, for paqmctl
}

// fault is what is impossible about a flow: nil, EINVAL or EAFNOSUPPORT.
func (f *Flow) fault() error {
	from, to := f.Source.Addr().Unmap(), f.Destination.Addr().Unmap()
	if from.IsValid() && !from.IsUnspecified() && to.IsValid() && from.Is4() != to.Is4() {
		return syscall.EAFNOSUPPORT
	}
	if !to.IsValid() || to.IsUnspecified() || f.Source.Port() == 0 || f.Destination.Port() == 0 ||
		f.CeilingBPS == 0 || f.CeilingBPS > RateMax || f.FloorBPS > f.CeilingBPS ||
		!micros(f.GOP) || !micros(f.Answer) {
		return syscall.EINVAL
	}
	return nil
}

// micros says whether a time fits into a record's field.
func micros(d time.Duration) bool {
	return d >= 0 && d.Microseconds() <= math.MaxUint32
}

// Advice is the newest advice for a flow.
type Advice struct {
	Flow       uint64 // of Client.Add
	Cause      Cause
	RateBPS    uint64        // upper bound, IP level; 0: no advice
	Error      syscall.Errno // with Refused
	RouterID   uint64        // of the router that sets the rate
	Router     netip.Addr    // its address; invalid: none
	Value      float32       // relative value of the message (ECF)
	Seq        uint32        // of the message
	Period     time.Duration // between its messages
	QueueDelay time.Duration // of that router's media queue
	Overload   bool          // that queue is beyond its limit
	Policed    bool          // this flow sends more than its rate, and its packets are held back
	Final      bool          // the fair rate itself, not a step towards it
	Auth       bool          // the message had a valid tag
	Routers    uint16        // routers whose advice is in force
	Captured   time.Duration // CLOCK_MONOTONIC less the age of the message
}

// registered is paqmd's answer to a registration.
type registered struct {
	cookie uint64
	err    syscall.Errno
}

func head(kind byte, length int) []byte {
	b := make([]byte, length)
	host.PutUint32(b, magic)
	b[4], b[5] = version, kind
	host.PutUint16(b[6:], uint16(length))
	return b
}

func address(a netip.Addr) [16]byte {
	if !a.IsValid() {
		return [16]byte{}
	}
	return a.As16()
}

func encodeRegister(cookie uint64, f *Flow) []byte {
	b := head(kindRegister, registerLen)
	from, to := address(f.Source.Addr()), address(f.Destination.Addr())
	copy(b[8:], from[:])
	copy(b[24:], to[:])
	host.PutUint16(b[40:], f.Source.Port())
	host.PutUint16(b[42:], f.Destination.Port())
	host.PutUint32(b[44:], f.SSRC)
	host.PutUint64(b[48:], f.FloorBPS)
	host.PutUint64(b[56:], f.CeilingBPS)
	host.PutUint32(b[64:], uint32(f.GOP.Microseconds()))
	host.PutUint32(b[68:], uint32(f.Answer.Microseconds()))
	host.PutUint64(b[72:], cookie)
	return b
}

func encodeUnregister(cookie uint64) []byte {
	b := head(kindUnregister, unregisterLen)
	host.PutUint64(b[8:], cookie)
	return b
}

func encodeStatus(cookie, bps uint64, gop, qp uint32) []byte {
	b := head(kindStatus, statusLen)
	host.PutUint64(b[8:], cookie)
	host.PutUint64(b[16:], bps)
	host.PutUint32(b[24:], gop)
	host.PutUint32(b[28:], qp)
	return b
}

// decode reads a record of paqmd: one of the two is not nil, or there is an error.
func decode(b []byte) (*registered, *Advice, error) {
	if len(b) < headLen {
		return nil, nil, fmt.Errorf("%d bytes, a header has %d", len(b), headLen)
	}
	if m := host.Uint32(b); m != magic {
		return nil, nil, fmt.Errorf("magic %#x, expected %#x", m, magic)
	}
	if b[4] != version {
		return nil, nil, fmt.Errorf("version %d, expected %d", b[4], version)
	}
	if n := int(host.Uint16(b[6:])); n != len(b) || n > recordMax {
		return nil, nil, fmt.Errorf("%d bytes, the header says %d", len(b), n)
	}
	want := map[byte]int{kindRegistered: registeredLen, kindRate: rateLen}[b[5]]
	if want == 0 {
		return nil, nil, fmt.Errorf("kind %d is not known", b[5])
	}
	if len(b) < want {
		return nil, nil, fmt.Errorf("%d bytes, its kind has %d", len(b), want)
	}
	if b[5] == kindRegistered {
		return &registered{host.Uint64(b[8:]), syscall.Errno(host.Uint32(b[16:]))}, nil, nil
	}
	flags := b[69]
	a := &Advice{
		Flow:       host.Uint64(b[8:]),
		RateBPS:    host.Uint64(b[16:]),
		RouterID:   host.Uint64(b[24:]),
		Captured:   time.Duration(host.Uint64(b[48:])),
		Value:      math.Float32frombits(host.Uint32(b[56:])),
		Seq:        host.Uint32(b[60:]),
		Period:     time.Duration(host.Uint16(b[64:])) * time.Millisecond,
		QueueDelay: time.Duration(host.Uint16(b[66:])) * 100 * time.Microsecond,
		Cause:      Cause(b[68]),
		Overload:   flags&flagOverload != 0,
		Policed:    flags&flagPoliced != 0,
		Final:      flags&flagFinal != 0,
		Auth:       flags&flagAuth != 0,
		Routers:    host.Uint16(b[70:]),
	}
	if router := *(*[16]byte)(b[32:48]); router != [16]byte{} {
		a.Router = netip.AddrFrom16(router).Unmap()
	}
	return nil, a, nil
}

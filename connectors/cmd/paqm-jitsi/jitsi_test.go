// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"testing"
	"time"
)

// The sample request of RFC 5769, 2.1, and its password.
const (
	sample = "000100582112a442b7e7a701bc34d686fa87dfae802200105354554e20746573742063" +
		"6c69656e74002400046e0001ff80290008932ff9b151263b36000600096576746a3a683676592020200008001" +
		"49aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf"
	samplePassword = "VOkJxbRl1RmTxUk/WvJxBt"
)

// packet puts a STUN message into UDP and IPv4, or IPv6.
func packet(message []byte, six bool) []byte {
	udp := binary.BigEndian.AppendUint16(nil, 40000)
	udp = binary.BigEndian.AppendUint16(udp, 10000)
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(message)))
	udp = append(append(udp, 0, 0), message...)
	head := make([]byte, 20)
	head[0], head[9] = 0x45, protocolUDP
	copy(head[12:], []byte{192, 0, 2, 7, 192, 0, 2, 1})
	if six {
		head = make([]byte, 40)
		head[0], head[6], head[23], head[39] = 0x60, protocolUDP, 7, 1
	}
	return append(head, udp...)
}

func request(t testing.TB) []byte {
	message, err := hex.DecodeString(sample)
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func TestSampleOfTheRFC(t *testing.T) {
	for _, six := range []bool{false, true} {
		c, ok := readCheck(packet(request(t), six))
		if !ok || c.username != "evtj:h6vY" || c.from.Port() != 40000 || c.to.Port() != 10000 {
			t.Fatal(c, ok)
		}
		if !c.by(samplePassword) || c.by("another") {
			t.Error("the signature")
		}
	}
	if c, _ := readCheck(packet(request(t), false)); c.from.Addr().String() != "192.0.2.7" {
		t.Error(c.from)
	}
}

func TestRefusedChecks(t *testing.T) {
	whole := packet(request(t), false)
	for n := range whole {
		if _, ok := readCheck(whole[:n]); ok {
			t.Errorf("%d of %d bytes are taken", n, len(whole))
		}
	}
	for name, change := range map[string]func(p []byte){
		"TCP":        func(p []byte) { p[9] = 6 },
		"a fragment": func(p []byte) { p[6] = 0x20 },
		"an answer":  func(p []byte) { p[28] = 1 },
		"no cookie":  func(p []byte) { p[32] = 0 },
	} {
		p := bytes.Clone(whole)
		change(p)
		if _, ok := readCheck(p); ok {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestRate(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	r := rate{ceiling: 20e6}
	expect := func(what string, after time.Duration, bps float64, told bool) {
		t.Helper()
		got, ok := r.next(begin.Add(after))
		if ok != told || ok && (got < bps*0.999 || got > bps*1.001) && got != bps {
			t.Errorf("%s: %v %v, expected %v %v", what, got, ok, bps, told)
		}
	}
	expect("at first", 0, own, true)
	expect("still nothing", time.Second, own, false)
	r.advice = 1_050_000
	expect("advice", 2*time.Second, 1e6, true)
	r.advice = 525_000
	expect("less, at once", 2*time.Second, 5e5, true)
	r.advice = 1_050_000
	expect("more, slowly", 3*time.Second, 5.4e5, true)
	r.estimate = 300_000
	expect("its own estimate is lower", 4*time.Second, own, true)
	r.estimate = 950_000
	expect("it is lower still", 5*time.Second, own, false)
	r.estimate = 2e6
	expect("it is not", 6*time.Second, 1e6, true)
	r.wish = 200_000
	expect("the viewer wants less", 7*time.Second, 2e5, true)
	r.advice = 0
	expect("no advice, his wish", 8*time.Second, 2e5, false)
	r.wish = 0
	expect("nothing", 9*time.Second, own, true)
}

// As lib-jitsi-meet sends them, and doc/allocation.md names them.
func TestMessages(t *testing.T) {
	const constraints = `{"colibriClass":"ReceiverVideoConstraints","assumedBandwidthBps":500000,` +
		`"constraints":{"a1b2-v0":{"maxHeight":720}},"defaultConstraints":{"maxHeight":180},"lastN":-1}`
	rest, wish, has := fromViewer(constraints)
	want := `{"colibriClass":"ReceiverVideoConstraints","constraints":{"a1b2-v0":{"maxHeight":720}},` +
		`"defaultConstraints":{"maxHeight":180},"lastN":-1}`
	if !has || wish != 500_000 || rest != want {
		t.Error(rest, wish, has)
	}
	for _, text := range []string{want, "", "assumedBandwidthBps", "[]", message(1e6)[:40],
		`{"colibriClass":"EndpointMessage","assumedBandwidthBps":5}`,
		`{"colibriClass":"ReceiverVideoConstraints","assumedBandwidthBps":"5"}`} {
		if rest, _, has := fromViewer(text); has || rest != text {
			t.Errorf("%q is changed to %q", text, rest)
		}
	}
	if _, wish, has := fromViewer(message(own)); !has || wish != 0 {
		t.Error("a viewer who takes his wish back")
	}
	if got, has := fromBridge(`{"colibriClass":"ConnectionStats","estimatedDownlinkBandwidth":2500000}`); !has ||
		got != 2.5e6 {
		t.Error(got, has)
	}
	for _, text := range []string{"", "ConnectionStats", `{"colibriClass":"ConnectionStats"}`,
		`{"colibriClass":"ConnectionStats","estimatedDownlinkBandwidth":-1}`,
		`{"colibriClass":"EndpointMessage","x":"ConnectionStats","estimatedDownlinkBandwidth":5}`} {
		if _, has := fromBridge(text); has {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestAddressOfTheBridge(t *testing.T) {
	for _, text := range []string{"", "http://h:1", "ws://", "ws://h/x", "h:1", ":", "ws://h:0",
		"ws://h:65536", "ws://h:9090?x=1", "ws://me:secret@h:9090"} { // they would fail at each viewer's channel
		if _, err := where(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for _, text := range []string{"ws://h", "wss://h:443", "ws://[::1]:9090"} {
		if at, err := where(text); err != nil || at != text {
			t.Errorf("%q: %q, %v", text, at, err)
		}
	}
}

// FuzzCheck: what arrives at the media's port is taken or refused, and only who knows the password signs.
func FuzzCheck(f *testing.F) {
	f.Add(packet(request(f), false))
	f.Add(packet(request(f), true))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, ok := readCheck(data)
		if !ok {
			return
		}
		if !c.from.IsValid() || !c.to.IsValid() || len(c.username) > usernameMax {
			t.Fatal(c)
		}
		sum := hmac.New(sha1.New, []byte("p"))
		sum.Write(c.signed)
		if c.by("p") != bytes.Equal(sum.Sum(nil), c.sum) {
			t.Fatal("the signature")
		}
	})
}

// FuzzChannel: what viewers and bridge say passes, whatever it is.
func FuzzChannel(f *testing.F) {
	f.Add(message(500_000))
	f.Add(`{"colibriClass":"ConnectionStats","estimatedDownlinkBandwidth":2500000}`)
	f.Fuzz(func(t *testing.T, text string) {
		rest, wish, has := fromViewer(text)
		if !has && rest != text || wish < 0 {
			t.Fatal(rest, wish)
		}
		if _, _, again := fromViewer(rest); has && again {
			t.Fatal("it is still in it")
		}
		fromBridge(text)
	})
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package client

// Records against the vectors that a C compiler laid out, and broken ones.

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

type vector struct {
	way, kind string
	fields    map[string]string
	record    []byte
}

func vectors(t testing.TB) []vector {
	text, err := os.ReadFile("../vectors/records.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if little := strings.Contains(lines[0], "Byte order: little."); little != (host == binary.LittleEndian) {
		t.Skip("the vectors are of another byte order")
	}
	var found []vector
	for _, line := range lines[1:] {
		words := strings.Split(line, " ")
		last := len(words) - 1
		record, err := hex.DecodeString(words[last])
		if err != nil {
			t.Fatal(err)
		}
		v := vector{words[0], words[1], map[string]string{}, record}
		for _, word := range words[2:last] {
			key, value, _ := strings.Cut(word, "=")
			v.fields[key] = value
		}
		found = append(found, v)
	}
	if len(found) < 20 {
		t.Fatal("no vectors")
	}
	return found
}

func made(v vector) []byte {
	n := func(key string) uint64 {
		value, _ := strconv.ParseUint(v.fields[key], 10, 64)
		return value
	}
	switch v.kind {
	case "unregister":
		return encodeUnregister(n("cookie"))
	case "status":
		return encodeStatus(n("cookie"), n("wire_bps"), uint32(n("gop")), uint32(n("qp")))
	}
	from, _ := netip.ParseAddr(v.fields["source"])
	to, _ := netip.ParseAddr(v.fields["destination"])
	return encodeRegister(n("cookie"), &Flow{
		Source:      netip.AddrPortFrom(from, uint16(n("source_port"))),
		Destination: netip.AddrPortFrom(to, uint16(n("destination_port"))),
		SSRC:        uint32(n("ssrc")), FloorBPS: n("floor_bps"), CeilingBPS: n("ceiling_bps"),
		GOP:    time.Duration(n("gop_us")) * time.Microsecond,
		Answer: time.Duration(n("answer_us")) * time.Microsecond,
	})
}

func shown(a *Advice) map[string]string {
	bit := map[bool]string{true: "1", false: "0"}
	router := ""
	if a.Router.IsValid() {
		router = a.Router.String()
	}
	return map[string]string{
		"cookie": fmt.Sprint(a.Flow), "cause": a.Cause.String(), "rate_bps": fmt.Sprint(a.RateBPS),
		"router_id": fmt.Sprint(a.RouterID), "router": router, "value": fmt.Sprintf("%g", a.Value),
		"seq": fmt.Sprint(a.Seq), "period_ms": fmt.Sprint(a.Period.Milliseconds()),
		"qdelay_ms": fmt.Sprintf("%.1f", a.QueueDelay.Seconds()*1000),
		"overload":  bit[a.Overload], "policed": bit[a.Policed], "final": bit[a.Final],
		"auth": bit[a.Auth], "routers": fmt.Sprint(a.Routers),
		"captured_ns": fmt.Sprint(uint64(a.Captured)),
	}
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		if v.way == "send" {
			if got := made(v); !bytes.Equal(got, v.record) {
				t.Errorf("%s %v: made %x, expected %x", v.kind, v.fields, got, v.record)
			}
			continue
		}
		answer, advice, err := decode(v.record)
		var got map[string]string
		switch {
		case v.kind == "refused":
			if err == nil {
				t.Errorf("taken in spite of: %s", v.fields["reason"])
			}
			continue
		case err != nil:
			t.Errorf("%s %v: %v", v.kind, v.fields, err)
			continue
		case answer != nil:
			got = map[string]string{"cookie": fmt.Sprint(answer.cookie), "error": fmt.Sprint(int(answer.err))}
		default:
			got = shown(advice)
		}
		if fmt.Sprint(got) != fmt.Sprint(v.fields) {
			t.Errorf("%s: got %v, expected %v", v.kind, got, v.fields)
		}
	}
}

func TestFaults(t *testing.T) {
	at := netip.MustParseAddrPort
	for _, f := range []Flow{
		{Source: at("192.0.2.1:1"), Destination: at("[2001:db8::1]:1"), CeilingBPS: 1},
		{Source: at("192.0.2.1:0"), Destination: at("192.0.2.2:1"), CeilingBPS: 1},
		{Source: at("0.0.0.0:1"), Destination: at("0.0.0.0:1"), CeilingBPS: 1},
		{Source: at("0.0.0.0:1"), Destination: at("192.0.2.2:1")},
		{Source: at("0.0.0.0:1"), Destination: at("192.0.2.2:1"), CeilingBPS: RateMax + 1},
		{Source: at("0.0.0.0:1"), Destination: at("192.0.2.2:1"), CeilingBPS: 1, FloorBPS: 2},
		{Source: at("0.0.0.0:1"), Destination: at("192.0.2.2:1"), CeilingBPS: 1, GOP: math.MaxInt64},
	} {
		if f.fault() == nil {
			t.Errorf("%+v is taken", f)
		}
	}
	good := Flow{Source: at("[::]:1"), Destination: at("192.0.2.2:1"), CeilingBPS: 1}
	if err := good.fault(); err != nil {
		t.Error(err)
	}
}

// FuzzDecode: whatever comes is an answer, advice or an error, one of them.
func FuzzDecode(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.record)
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		answer, advice, err := decode(record)
		count := 0
		for _, there := range []bool{answer != nil, advice != nil, err != nil} {
			if there {
				count++
			}
		}
		if count != 1 {
			t.Fatalf("%d results", count)
		}
		if advice != nil && len(record) < rateLen || answer != nil && len(record) < registeredLen {
			t.Fatal("more was read than there is")
		}
	})
}

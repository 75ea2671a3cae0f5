// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"strings"
	"testing"
)

// As Janus 1.1.2 answers.
const info = `{"janus":"success","info":{"plugin":"janus.plugin.videoroom","plugin_specific":{
"type":"subscriber","room":1234,"streams":[{"type":"video","active":true},{"type":"audio","active":true},
{"type":"video","active":true}]},"webrtc":{"ice":{"state":"ready",
"selected-pair":"192.0.2.2:52591 [host,udp] <-> 192.0.2.7:47846 [prflx,udp]"}}}}`

func TestInfo(t *testing.T) {
	got, err := parse(strings.NewReader(info))
	if err != nil {
		t.Fatal(err)
	}
	if !(&janus{room: 1234}).isHere(&got.Info) || pictures(&got.Info) != 2 {
		t.Fatal(got.Info)
	}
	if (&janus{room: 1}).isHere(&got.Info) {
		t.Error("a viewer of another room")
	}
	local, remote, err := parsePair(got.Info.WebRTC.ICE.Pair)
	if err != nil || local.String() != "192.0.2.2:52591" || remote.String() != "192.0.2.7:47846" {
		t.Fatal(local, remote, err)
	}
}

func TestRefusals(t *testing.T) {
	for _, text := range []string{"", "[]", `{"janus":"error","error":{"reason":"no"}}`,
		`{"janus":"success","plugindata":{"data":{"error":"Unauthorized"}}}`} {
		if _, err := parse(strings.NewReader(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for _, pair := range []string{"", "a <-> b", "1.2.3.4:5 [host,tcp] <-> 1.2.3.4:5 [host,udp]",
		"1.2.3.4 [host,udp] <-> 1.2.3.4:5 [host,udp]", "1.2.3.4:5 [host,udp] <-> x:5 [host,udp]"} {
		if _, _, err := parsePair(pair); err == nil {
			t.Errorf("%q is taken", pair)
		}
	}
	if _, remote, err := parsePair("2001:db8::1:5 [host,udp] <-> 2001:db8::2:6 [host,udp]"); err != nil ||
		remote.String() != "[2001:db8::2]:6" {
		t.Error(remote, err)
	}
}

func TestTheLeastDecides(t *testing.T) {
	c := &connector{ceiling: 2e6, viewers: map[string]*viewer{
		"a": {streams: 1}, "b": {bps: 1_050_000, streams: 2}, "c": {bps: 1_050_000, streams: 1},
	}}
	if got := c.rate(); got < 499e3 || got > 501e3 {
		t.Errorf("%.0f, expected 500000: b is sent two pictures", got)
	}
	c.viewers = nil
	if c.rate() != 2e6 {
		t.Error("without viewers it is not the ceiling")
	}
	c.viewers = map[string]*viewer{"a": {bps: 1, streams: 1}}
	if c.rate() != leastBPS {
		t.Error("no picture at all")
	}
}

// FuzzPair: what Janus writes is taken or refused.
func FuzzPair(f *testing.F) {
	f.Add("192.0.2.2:52591 [host,udp] <-> 192.0.2.7:47846 [prflx,udp]")
	f.Fuzz(func(t *testing.T, text string) {
		local, remote, err := parsePair(text)
		if err == nil && (!local.IsValid() || !remote.IsValid()) {
			t.Fatal(local, remote)
		}
	})
}

// FuzzAnswer: so is any answer.
func FuzzAnswer(f *testing.F) {
	f.Add(info)
	f.Fuzz(func(_ *testing.T, text string) {
		if got, err := parse(strings.NewReader(text)); err == nil {
			(&janus{room: 1234}).isHere(&got.Info)
			pictures(&got.Info)
		}
	})
}

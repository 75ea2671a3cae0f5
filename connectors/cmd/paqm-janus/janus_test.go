// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"paqm.example/client"
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

// room is a Janus with one publisher and one viewer; it hands on what publishers are told.
func room(t *testing.T) (string, <-chan uint64) {
	told := make(chan uint64, 1000)
	answers := map[string]string{
		"list_sessions": `{"janus":"success","sessions":[1]}`,
		"list_handles":  `{"janus":"success","handles":[2,3]}`,
		"message":       `{"janus":"ack"}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Janus string
			Body  struct{ Bitrate uint64 }
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		text := answers[asked.Janus]
		if asked.Janus == "message" {
			told <- asked.Body.Bitrate
		} else if asked.Janus == "handle_info" {
			text = info
			if r.URL.Path == "/1/3" {
				text = strings.Replace(info, "subscriber", "publisher", 1)
			}
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return server.URL, told
}

func TestAdviceWithoutAPause(t *testing.T) {
	url, told := room(t)
	paqmd, err := client.Open(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	defer paqmd.Close()
	c := &connector{
		janus:  &janus{api: url, admin: url, room: 1234},
		client: paqmd, ceiling: 2e6, viewers: map[string]*viewer{},
	}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	advice := make(chan client.Advice)
	ended := make(chan struct{})
	defer func() { stop(); <-ended }()
	go func() {
		_ = c.run(ctx, advice)
		close(ended)
	}()
	falling := uint64(2e6)
	for tick := time.Tick(editAt * 2 / 5); ; <-tick {
		select {
		case advice <- client.Advice{Flow: 1, Cause: client.ERF, RateBPS: falling}:
			falling = max(falling*99/100, leastBPS)
		case bps := <-told:
			if bps < 1e6 {
				return
			}
		case <-ctx.Done():
			t.Fatal("while advice comes publishers are told nothing")
		}
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
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
"selected-pair":"192.0.2.2:52591 [host,udp] <-> 192.0.2.7:47846 [prflx,udp]"},"media":{
"0":{"type":"video","mid":"0","stats":{"in":{"bytes":1},"out":{"packets":30,"bytes":30000,"bytes_lastsec":0}}},
"1":{"type":"audio","mid":"1","stats":{"in":{"bytes":1},"out":{"bytes":5000}}},
"2":{"type":"video","mid":"2","stats":{"in":{"bytes":0},"out":{"bytes":10000}}}}}}}`

func TestInfo(t *testing.T) {
	got, err := parse(strings.NewReader(info))
	if err != nil {
		t.Fatal(err)
	}
	if !(&janus{room: "1234"}).isHere(&got.Info) || pictures(&got.Info) != 2 || sent(&got.Info) != 40_000 {
		t.Fatal(got.Info)
	}
	if (&janus{room: "1"}).isHere(&got.Info) {
		t.Error("a viewer of another room")
	}
	got, err = parse(strings.NewReader(strings.Replace(info, `"room":1234`, `"bitrate":{"video":1},"room":1`, 1)))
	if err != nil || limitOf(&got.Info, time.Now()).ok {
		t.Error("another plugin's bitrate:", err)
	}
	got, err = parse(strings.NewReader(strings.Replace(info, `"room":1234`, `"room":"lobby"`, 1)))
	if err != nil || !(&janus{room: "lobby"}).isHere(&got.Info) || (&janus{room: `"lobby"`}).isHere(&got.Info) {
		t.Error("string_ids:", err)
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

// Behind a NAT what the viewer sees of Janus is not what routers inside quote.
func TestPairBehindNAT(t *testing.T) {
	for _, kind := range []string{"prflx", "srflx"} {
		local, remote, err := parsePair("203.0.113.9:52591 [" + kind + ",udp] <-> 192.0.2.7:47846 [host,udp]")
		if err != nil || local.Addr().IsValid() || local.Port() != 52591 || remote.Port() != 47846 {
			t.Error(kind, local, remote, err)
		}
	}
	if local, _, err := parsePair("203.0.113.9:5 [relay,udp] <-> 192.0.2.7:47846 [host,udp]"); err == nil {
		t.Error("a relay's address is taken:", local)
	}
	if _, _, err := parsePair("192.0.2.2:5 [host,udp] <-> 192.0.2.7:47846 [relay,udp]"); err != nil {
		t.Error("a viewer behind a relay:", err)
	}
}

func TestTheLeastDecides(t *testing.T) {
	now := time.Now()
	c := &connector{ceiling: 2e6, floor: 2e5, start: 2e6, granted: 2e6, viewers: map[string]*viewer{
		"a": {streams: 1}, "b": {bps: 1_050_000, streams: 2, router: 1},
		"c": {bps: 1_050_000, streams: 1, router: 2},
	}}
	if got := c.grant(now); got < 499e3 || got > 501e3 {
		t.Errorf("%.0f, expected 500000: b is sent two pictures", got)
	}
	c.viewers["c"].router = 1
	if got := c.grant(now); got < 480e3 || got > 481e3 {
		t.Errorf("%.0f, expected 480769: two are behind one router", got)
	}
	c.viewers = nil
	if c.grant(now) != 2e6 {
		t.Error("without viewers it is not the ceiling")
	}
	c.viewers = map[string]*viewer{"a": {bps: 1, streams: 1}}
	if c.grant(now) != 2e5 {
		t.Error("one viewer takes the picture from all")
	}
	at := netip.MustParseAddrPort("192.0.2.1:4000")
	if f := c.flow(at, at); f.FloorBPS != 210_000 || f.CeilingBPS != client.RateMax {
		t.Error("paqmd is told another floor: ", f)
	}
}

// A router that has 10 Mbit/s for fifty viewers tells each what he could use beside 49 who stay. All at
// once they must not have more than it has.
func TestAPictureGrowsForAll(t *testing.T) {
	const link, many = 10e6, 50
	c := &connector{ceiling: 2e6, start: 1e5, granted: 1e5, viewers: map[string]*viewer{}}
	at, bytes := time.Now(), 0.0
	for i := range many {
		c.viewers[fmt.Sprint(i)] = &viewer{streams: 1, came: at.Add(-time.Minute), at: at}
	}
	rate, seconds := 1e5, 0
	for ; seconds < 60 && rate < 0.9*link/headers/many; seconds++ {
		at, bytes = at.Add(time.Second), bytes+rate/8
		use := rate * headers
		// as core/paqm_maxmin.h has it: all are limited, one more is assumed, and none more than doubles
		told := min(max(link-keeps*many*use, link/many), max(2*use, link/many))
		for _, v := range c.viewers {
			v.bps, v.router = uint64(told), 1
			v.look(subscriber{streams: 1, bytes: uint64(bytes), at: at})
		}
		rate = c.grant(at)
		if sum := rate * headers * many; sum > 0.962*link {
			t.Fatalf("%.0f for each after %d s: %.0f in sum", rate, seconds, sum)
		}
	}
	if seconds > 10 {
		t.Errorf("%.0f after %d s", rate, seconds)
	}
	for name := range c.viewers { // one alone has what he is told
		if name != "7" {
			delete(c.viewers, name)
		}
	}
	c.viewers["7"].bps = 1_050_000
	if got := c.grant(at); got < 999e3 {
		t.Errorf("one viewer: %.0f, expected 1000000", got)
	}
}

func TestWhoHasJustComeIsWaitedFor(t *testing.T) {
	now := time.Now()
	c := &connector{ceiling: 2e6, start: 3e5, granted: 3e5, viewers: map[string]*viewer{}}
	if c.grant(now) != 3e5 {
		t.Error("nobody is there: not the start")
	}
	a := &viewer{streams: 1, came: now}
	c.viewers["a"] = a
	if c.grant(now.Add(patience/2)) != 3e5 || c.grant(now.Add(patience)) != 2e6 {
		t.Error("no router speaks: expected the start, and after a while the ceiling")
	}
	a.bps = 525_000
	if c.grant(now.Add(settled/2)) != 5e5 || c.grant(now.Add(settled)) != 5e5 {
		t.Error("expected what the router says, 500000")
	}
	now = now.Add(time.Minute)
	c.viewers["b"] = &viewer{streams: 1, came: now}
	a.bps = 1_050_000
	if got := c.grant(now); got != 5e5 {
		t.Errorf("%.0f: it rises while a new viewer has no advice", got)
	}
	a.bps = 420_000
	if got := c.grant(now); got != 4e5 {
		t.Errorf("%.0f: it does not fall while a new viewer has no advice", got)
	}
	a.bps = 1_050_000
	if got := c.grant(now.Add(patience)); got != 1e6 {
		t.Errorf("%.0f, expected 1000000: no router speaks about the new one", got)
	}
	a.came, a.bps = now, 2_100_000
	if c.grant(now.Add(patience)) != 2e6 || c.grant(now.Add(settled/2)) != 2e6 {
		t.Error("what was granted already is taken back")
	}
}

type told struct {
	path string
	bps  uint64
}

// room is a Janus with viewers (handle 2) and publishers (the others); it hands on what publishers are
// told. instead may answer a request in its place.
func room(t *testing.T, handles string, instead func(w http.ResponseWriter, r *http.Request, what string) bool) (
	*connector, <-chan told) {
	heard := make(chan told, 1000)
	answers := map[string]string{
		"list_sessions": `{"janus":"success","sessions":[1]}`,
		"list_handles":  `{"janus":"success","handles":[` + handles + `]}`,
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
			heard <- told{r.URL.Path, asked.Body.Bitrate}
		} else if asked.Janus == "handle_info" {
			text = info
			if r.URL.Path != "/1/2" {
				text = strings.Replace(info, "subscriber", "publisher", 1)
			}
		}
		if instead == nil || !instead(w, r, asked.Janus) {
			_, _ = io.WriteString(w, text)
		}
	}))
	t.Cleanup(server.Close)
	paqmd, err := client.Open(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { paqmd.Close() })
	return &connector{
		janus:  &janus{api: server.URL, admin: server.URL, room: "1234"},
		client: paqmd, ceiling: 2e6, start: 2e6, granted: 2e6, viewers: map[string]*viewer{},
	}, heard
}

// running starts a connector; it ends with the test, or when end is called.
func running(t *testing.T, c *connector) (advice chan client.Advice, end func()) {
	ctx, stop := context.WithCancel(context.Background())
	advice = make(chan client.Advice)
	ended := make(chan struct{})
	go func() {
		_ = c.run(ctx, advice)
		close(ended)
	}()
	end = func() { stop(); <-ended }
	t.Cleanup(end)
	return advice, end
}

func lookOnce(t *testing.T, c *connector) {
	there, err := c.janus.people(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c.take(there)
}

// until waits for what a publisher is told last.
func until(t *testing.T, heard <-chan told, fits func(bps uint64) bool) {
	limit := time.After(20 * time.Second)
	for {
		select {
		case one := <-heard:
			if fits(one.bps) {
				return
			}
		case <-limit:
			t.Fatal("publishers are not told")
		}
	}
}

func low(bps uint64) bool { return bps < 500e3 }

func TestWhoCannotBeFollowedIsToldOnce(t *testing.T) {
	var printed strings.Builder
	log.SetOutput(&printed)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	c, _ := room(t, "2", nil)
	there := func(pair string) *people {
		return &people{viewers: map[string]subscriber{"1/2": {pair: pair, streams: 1}}}
	}
	for range 3 {
		c.take(there("nonsense"))
	}
	if lines := strings.Count(printed.String(), "\n"); lines != 1 {
		t.Errorf("%d lines about one viewer: %s", lines, printed.String())
	}
	c.take(there("other nonsense"))
	c.take(&people{unknown: map[string]error{"1/2": io.EOF}})
	c.take(there("other nonsense"))
	if lines := strings.Count(printed.String(), "\n"); lines != 2 {
		t.Errorf("%d lines: who is not known for a moment is not new: %s", lines, printed.String())
	}
	c.take(&people{})
	c.take(there("other nonsense"))
	if lines := strings.Count(printed.String(), "\n"); lines != 3 {
		t.Errorf("%d lines, expected one for each reason and visit: %s", lines, printed.String())
	}
}

func TestNoAnswerIsNotGone(t *testing.T) {
	answer := map[string]string{}
	c, heard := room(t, "2,3", func(w http.ResponseWriter, r *http.Request, what string) bool {
		text, ok := answer[r.URL.Path+" "+what]
		if text == "" && ok {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, text)
		return ok
	})
	lookOnce(t, c)
	c.onAdvice(client.Advice{Flow: 1, Cause: client.ERF, RateBPS: 630e3})
	for _, silent := range []string{"/1/2 handle_info", "/1/3 handle_info", "/1 list_handles"} {
		answer[silent] = ""
		lookOnce(t, c)
		delete(answer, silent)
		if err := c.tell(context.Background(), c.grant(time.Now())); err != nil || len(c.viewers) != 1 || len(c.set) != 1 {
			t.Fatal(silent, err, c.viewers, c.set)
		}
	}
	if one := <-heard; one.bps != 300e3 || len(heard) != 0 {
		t.Error("told", one, "and more:", len(heard))
	}
	for _, code := range []string{"458", "459"} {
		answer["/1/2 handle_info"] = `{"janus":"error","error":{"code":` + code + `,"reason":"none"}}`
		lookOnce(t, c)
		if len(c.viewers) != 0 {
			t.Error("a viewer who is gone is kept:", code)
		}
		delete(answer, "/1/2 handle_info")
		lookOnce(t, c)
	}
}

func TestOneRefuses(t *testing.T) {
	c, heard := room(t, "2,3,4,5,6,7,8,9", func(w http.ResponseWriter, r *http.Request, what string) bool {
		if what != "message" || r.URL.Path != "/1/5" {
			return false
		}
		_, _ = io.WriteString(w, `{"janus":"error","error":{"code":403,"reason":"Unauthorized request"}}`)
		return true
	})
	lookOnce(t, c)
	if err := c.tell(context.Background(), c.grant(time.Now())); err == nil || len(heard) != 7 {
		t.Error("asked:", len(heard), "of 7;", err)
	}
	if err := c.tell(context.Background(), c.grant(time.Now())); err == nil || len(heard) != 8 {
		t.Error("then:", len(heard)-7, "expected the one who refused;", err)
	}
}

// What a page sets for its own pictures holds where it is less than what routers allow, and no longer than
// that where it is more.
func TestAPageSetsARateItself(t *testing.T) {
	bitrate := "350000"
	c, heard := room(t, "3", func(w http.ResponseWriter, _ *http.Request, what string) bool {
		if what != "handle_info" {
			return false
		}
		_, _ = io.WriteString(w, strings.NewReplacer("subscriber", "publisher", `"room"`,
			`"bitrate":`+bitrate+`,"room"`).Replace(info))
		return true
	})
	c.ceiling, c.start, c.granted = 1e6, 1e6, 1e6
	step := func(is string, want ...uint64) {
		t.Helper()
		bitrate = is
		for _, p := range c.set {
			p.told = p.told.Add(-2 * look)
		}
		lookOnce(t, c)
		if err := c.tell(context.Background(), c.grant(time.Now())); err != nil {
			t.Fatal(err)
		}
		for _, bps := range want {
			if len(heard) == 0 {
				t.Fatalf("%s: he is told nothing, expected %d", is, bps)
			}
			if one := <-heard; one.bps != bps {
				t.Fatalf("%s: he is told %d, expected %d", is, one.bps, bps)
			}
		}
		if len(heard) != 0 {
			t.Fatalf("%s: he is told %d", is, (<-heard).bps)
		}
	}
	wait := func() {
		for _, p := range c.set {
			p.told = p.told.Add(-slow)
		}
	}
	step("350000", 1e6) // the room's, until he is followed
	step("350000")      // Janus is slow
	step("1000000")
	step("5000000", 1e6)
	step("5000000") // slow again
	wait()
	step("5000000", 1e6) // it is the page, which insists
	step("1000000")
	step("1000000")
	step("200000")
	c.ceiling, c.granted = 4e5, 4e5
	step("200000")
	c.ceiling = 1e5
	step("200000", 1e5)
	c.ceiling = 1e6
	step("100000", 2e5)
	step("0", 1e6)
	step("0")
	wait()
	step("0", 1e6)
	if err := c.leave(); err != nil || len(heard) != 0 {
		t.Error("told for nothing:", len(heard), err)
	}
}

func TestCeilingAtTheEnd(t *testing.T) {
	c, heard := room(t, "2,3", nil)
	advice, end := running(t, c)
	until(t, heard, func(bps uint64) bool { return bps == 2e6 })
	advice <- client.Advice{Flow: 1, Cause: client.ERF, RateBPS: 630e3}
	until(t, heard, low)
	end()
	if len(heard) == 0 {
		t.Fatal("the rate stays low")
	}
	until(t, heard, func(bps uint64) bool { return bps == 2e6 && len(heard) == 0 })
}

func TestAdviceWhileJanusHangs(t *testing.T) {
	looks := 0
	hangs := make(chan struct{})
	c, heard := room(t, "2,3", func(_ http.ResponseWriter, r *http.Request, what string) bool {
		if what != "list_sessions" {
			return false
		}
		if looks++; looks == 1 {
			return false
		}
		if looks == 2 {
			close(hangs)
		}
		<-r.Context().Done()
		return true
	})
	advice, end := running(t, c)
	<-hangs
	select {
	case advice <- client.Advice{Flow: 1, Cause: client.ERF, RateBPS: 630e3}:
	case <-time.After(8 * time.Second): // the request ends after 10
		t.Fatal("advice waits for the look")
	}
	until(t, heard, low)
	end()
}

func TestAdviceWithoutAPause(t *testing.T) {
	c, heard := room(t, "2,3", nil)
	advice, _ := running(t, c)
	limit := time.After(20 * time.Second)
	falling := uint64(2e6)
	for tick := time.Tick(editAt * 2 / 5); ; <-tick {
		select {
		case advice <- client.Advice{Flow: 1, Cause: client.ERF, RateBPS: falling}:
			falling = max(falling*99/100, leastBPS)
		case one := <-heard:
			if one.bps < 1e6 {
				return
			}
		case <-limit:
			t.Fatal("while advice comes publishers are told nothing")
		}
	}
}

// FuzzPair: what Janus writes is taken or refused.
func FuzzPair(f *testing.F) {
	f.Add("192.0.2.2:52591 [host,udp] <-> 192.0.2.7:47846 [prflx,udp]")
	f.Fuzz(func(t *testing.T, text string) {
		local, remote, err := parsePair(text)
		if err == nil && !remote.IsValid() {
			t.Fatal(local, remote)
		}
	})
}

// FuzzAnswer: so is any answer.
func FuzzAnswer(f *testing.F) {
	f.Add(info)
	f.Fuzz(func(_ *testing.T, text string) {
		if got, err := parse(strings.NewReader(text)); err == nil {
			(&janus{room: "1234"}).isHere(&got.Info)
			pictures(&got.Info)
		}
	})
}

func TestIsWeb(t *testing.T) {
	for text, good := range map[string]bool{
		"http://127.0.0.1:8088/janus": true, "https://janus.example/admin": true, "": false,
		"127.0.0.1:8088/janus": false, "ftp://127.0.0.1/janus": false, "http:///janus": false,
		"http://127.0.0.1:80x/": false, "http://127.0.0.1:0/janus": false,
		"http://127.0.0.1:80880/janus": false, "http://[::1]:8088/janus": true,
	} {
		if err := isWeb(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestASlashAtTheEnd(t *testing.T) {
	for _, text := range []string{"http://a/janus", "http://a/janus/", "http://a/janus//"} {
		if got := base(text); got != "http://a/janus" {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// Of a path that is mistyped the status tells, not the page that comes with it.
func TestAskElsewhere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := ask(context.Background(), server.URL+"/admn", map[string]any{})
	if err == nil || !strings.Contains(err.Error(), "/admn: 404 Not Found") {
		t.Error(err)
	}
}

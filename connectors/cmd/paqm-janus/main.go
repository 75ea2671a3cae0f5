// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// paqm-janus makes the publishers of a room of Janus (VideoRoom) send what the routers on the way to
// its viewers allow: a room has one picture of each publisher for all viewers, so the viewer who is
// allowed least decides. Janus tells publishers by REMB, as with the room's own bitrate.
//
//	paqm-janus --room 1234 --admin-secret S [--api-secret S] [--ceiling 2000000] [--floor 150000]
//	           [--start 300000]
//
// Who is there, and by which addresses, is asked of the Admin API (handle_info); the rate is set by
// the plugin's request `configure` in the publishers' own names. Without advice it is the ceiling, and so
// it is when the program is stopped; a page that asks for less itself has that. Behind a NAT, 1:1 ones of
// clouds included, viewers are followed where it keeps ports; what goes through a relay is not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"paqm.example/client"
	"paqm.example/connectors/ends"
)

const (
	look     = time.Second           // between two looks at who is there
	slow     = 10 * time.Second      // so long Janus may tell what held before a request
	editAt   = 50 * time.Millisecond // after advice: that for other viewers comes with it
	headers  = 1.05                  // of the rate at the IP level to that of payload, packets of 1200 bytes
	leastBPS = 64_000                // Janus takes less for a whole room as "no picture"
	floorBPS = 150_000               // a small picture
	leaving  = 3 * time.Second       // for the last word to publishers
	failures = 60                    // looks that fail in a row between two lines about them
	changed  = 0.02                  // part by which a rate must differ to be set
	// For so long a new viewer is waited for: a router with many flows tells those first that last for 2 s.
	patience = 3 * time.Second
	// Where one has come others may have, who are not seen yet.
	settled = 2 * look
	// What a router keeps for a flow that does not use its rate: what it uses, and a tenth.
	keeps = 1.1
	// What a picture has beyond its rate meets the router once for every viewer behind it, at the same time, and
	// stands there until their share has carried it: so much less is asked for where there are several.
	together = 1.04
)

type viewer struct {
	number  uint64 // of the client
	pair    string
	streams int
	bps     uint64 // advice; 0: none
	router  uint64 // whose
	came    time.Time

	bytes uint64 // of pictures, when he was looked at last
	at    time.Time
	uses  float64 // bit/s of pictures; 0: not known
}

// publisher is who is told what he may send.
type publisher struct {
	set    float64   // bit/s, told last; 0: it is not known what holds
	before float64   // what held before that
	told   time.Time // when
	own    float64   // what somebody else has set since, his page as a rule; 0: nothing
}

// look sees whether somebody else has set a rate. Janus takes a request at once, and does it later: until then
// it tells what held before. A page that sets that same rate again is seen once this time has passed.
func (p *publisher) look(now limit) {
	since := now.at.Sub(p.told)
	switch {
	case !now.ok:
	case p.set == 0:
		p.before = float64(now.bps)
	case since <= look || now.bps == uint32(p.set) || since <= slow && now.bps == uint32(p.before):
	default:
		p.own, p.set, p.before = float64(now.bps), float64(now.bps), float64(now.bps)
	}
}

// may is what he is told where others may send this rate.
func (p *publisher) may(rate float64) float64 {
	if p.own != 0 {
		return min(rate, p.own)
	}
	return rate
}

type connector struct {
	janus   *janus
	client  *client.Client
	ceiling uint64
	floor   uint64                // no viewer, nor who speaks in his router's name, lowers all to less
	start   uint64                // before routers have spoken
	granted float64               // what each publisher may send now
	viewers map[string]*viewer    // by handle
	set     map[string]*publisher // by handle
	refused map[string]string     // why a viewer who is there can't be followed, by handle
}

// grant finds what each publisher may send, bit/s of payload. While viewers come nothing rises: there is no
// advice about the new ones yet, and that about the others does not know of them.
func (c *connector) grant(now time.Time) float64 {
	behind := map[uint64]int{}
	fresh := len(c.viewers) == 0
	for _, v := range c.viewers {
		age := now.Sub(v.came)
		if v.bps != 0 {
			behind[v.router]++
			fresh = fresh || age < settled
		} else {
			fresh = fresh || age < patience
		}
	}
	rate := float64(c.ceiling)
	for _, v := range c.viewers {
		if v.bps != 0 {
			rate = min(rate, v.allowed(c.granted, behind[v.router]))
		}
	}
	switch {
	case fresh && len(behind) == 0:
		rate = min(rate, float64(c.start))
	case fresh:
		rate = min(rate, c.granted)
	}
	c.granted = max(rate, float64(c.floor))
	return c.granted
}

// allowed is what each picture for a viewer may have, bit/s of payload, where so many viewers are behind his
// router. It tells each what he could use if the others stayed as they are, but a picture grows for all at
// once. So none is granted more than what the router keeps for him, and his part of what it tells.
func (v *viewer) allowed(granted float64, viewers int) float64 {
	told := float64(v.bps) / headers
	rate := told / float64(v.streams)
	if viewers > 1 {
		rate /= together
		if v.uses != 0 {
			part := (keeps*v.uses + told/float64(viewers)) / float64(v.streams)
			rate = min(rate, max(granted, part/together))
		}
	}
	return rate
}

// look measures what a viewer is sent.
func (v *viewer) look(now subscriber) {
	v.streams = now.streams
	if past := now.at.Sub(v.at).Seconds(); past > 0 && now.bytes >= v.bytes {
		v.uses = 8 * float64(now.bytes-v.bytes) / past
	}
	v.bytes, v.at = now.bytes, now.at
}

// lookAround asks who is there, in a goroutine of its own: Janus may have many handles and take its time, or
// not answer at all, and advice must not wait for that.
func (c *connector) lookAround(ctx context.Context, found chan<- *people) {
	failed := 0
	for {
		there, err := c.janus.people(ctx)
		if err == nil {
			select {
			case found <- there:
			case <-ctx.Done():
				return
			}
			err = there.err()
		}
		if err == nil {
			failed = 0
		} else if failed++; failed%failures == 1 && ctx.Err() == nil { // Janus may be restarted
			log.Println("paqm-janus:", err)
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return
		}
	}
}

// take registers who came and gives up who went. About whom Janus did not answer is still there: else
// one failure would raise the rate for all.
func (c *connector) take(there *people) {
	before := c.set
	c.set = map[string]*publisher{}
	for name, p := range before {
		if there.isUnknown(name) {
			c.set[name] = p
		}
	}
	for name, now := range there.publishers {
		p := before[name]
		if p == nil {
			p = &publisher{}
		}
		p.look(now)
		c.set[name] = p
	}
	for name, v := range c.viewers {
		if now, ok := there.viewers[name]; ok && now.pair == v.pair {
			v.look(now)
			continue
		}
		if there.isUnknown(name) {
			continue
		}
		_ = c.client.Remove(v.number)
		delete(c.viewers, name)
	}
	said := c.refused
	c.refused = map[string]string{}
	for name, why := range said {
		if there.isUnknown(name) {
			c.refused[name] = why
		}
	}
	for name, now := range there.viewers {
		if c.viewers[name] != nil {
			continue
		}
		number, err := c.add(now.pair)
		if err == nil {
			c.viewers[name] = &viewer{
				number: number, pair: now.pair, streams: now.streams, came: now.at, bytes: now.bytes, at: now.at,
			}
			continue
		}
		c.refused[name] = err.Error()
		if said[name] != err.Error() { // each is looked at every second
			log.Printf("paqm-janus: viewer %s: %v", name, err)
		}
	}
}

// flow is what paqmd is told; a rate below the floor is none that anybody would follow.
func (c *connector) flow(local, remote netip.AddrPort) client.Flow {
	return client.Flow{
		Source: local, Destination: remote, CeilingBPS: client.RateMax,
		FloorBPS: min(uint64(headers*float64(c.floor)), client.RateMax),
	}
}

// add registers the flow of a pair of candidates as Janus prints it.
func (c *connector) add(pair string) (uint64, error) {
	local, remote, err := parsePair(pair)
	if err != nil {
		return 0, err
	}
	if !local.Addr().IsValid() {
		local = netip.AddrPortFrom(own(local.Port(), remote.Addr()), local.Port())
	}
	number, err := c.client.Add(c.flow(local, remote))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", pair, err)
	}
	return number, nil
}

func (c *connector) onAdvice(a client.Advice) {
	for name, v := range c.viewers {
		if v.number == a.Flow {
			v.bps, v.router = a.RateBPS, a.RouterID
			if a.Cause == client.Refused {
				log.Printf("paqm-janus: viewer %s: paqmd refuses it: %v", name, a.Error)
			}
		}
	}
}

// tell sets the rate of publishers for whom it has changed. One who refuses keeps no other from being told.
func (c *connector) tell(ctx context.Context, rate float64) (failed error) {
	for name, p := range c.set {
		may := p.may(rate)
		if d := may/p.set - 1; p.set != 0 && d < changed && d > -changed {
			continue
		}
		if p.set != 0 {
			p.before, p.set = p.set, 0 // if he refuses it is not known which rate holds: again next time
		}
		if err := c.janus.configure(ctx, name, uint64(may)); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		p.set, p.told = may, time.Now()
	}
	return failed
}

// leave gives publishers back the ceiling: nobody else would raise what was set last.
func (c *connector) leave() error {
	ctx, stop := context.WithTimeout(context.Background(), leaving)
	defer stop()
	return c.tell(ctx, float64(c.ceiling))
}

func (c *connector) run(ctx context.Context, advice <-chan client.Advice) error {
	found := make(chan *people)
	go c.lookAround(ctx, found)
	var edit <-chan time.Time
	later := func() { // one that waits stays: advice may come without a pause
		if edit == nil {
			edit = time.After(editAt)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return c.leave()
		case a := <-advice:
			c.onAdvice(a)
			later()
		case there := <-found:
			c.take(there)
			later()
		case <-edit:
			edit = nil
			if err := c.tell(ctx, c.grant(time.Now())); err != nil && ctx.Err() == nil {
				log.Println("paqm-janus:", err)
			}
		}
	}
}

// isWeb judges an address of Janus: one that is none would be asked again and again.
func isWeb(text string) error {
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return fmt.Errorf("%s: expected http://HOST:PORT/PATH", text)
	}
	if port, err := strconv.ParseUint(at.Port(), 10, 16); at.Port() != "" && (err != nil || port == 0) {
		return fmt.Errorf("%s: expected a port of 1 to 65535", text)
	}
	return nil
}

// base is what paths are put behind: Janus answers no request about a session behind two slashes.
func base(text string) string {
	return strings.TrimRight(text, "/")
}

func start() error {
	api := flag.String("api", "http://127.0.0.1:8088/janus", "the Janus API")
	admin := flag.String("admin", "http://127.0.0.1:7088/admin", "the Admin API")
	adminSecret := flag.String("admin-secret", os.Getenv("JANUS_ADMIN_SECRET"), "its secret")
	room := flag.String("room", "", "number of the room, or its name with string_ids")
	secret := flag.String("api-secret", os.Getenv("JANUS_API_SECRET"), "of the Janus API, if it has one")
	ceiling := flag.Uint64("ceiling", 2_000_000, "of a publisher without advice, bit/s")
	floor := flag.Uint64("floor", 0, "of a publisher, bit/s (150000; at most --start)")
	start := flag.Uint64("start", 0, "of a publisher until a router has spoken about a viewer, bit/s (the ceiling)")
	socket := flag.String("paqmd", "", "paqmd's socket")
	flag.Parse()
	if *room == "" || flag.NArg() != 0 {
		return errors.New("expected --room ROOM and no other words")
	}
	for name, text := range map[string]string{"--api": *api, "--admin": *admin} {
		if err := isWeb(text); err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
	}
	if *ceiling < leastBPS || *ceiling > client.RateMax {
		return fmt.Errorf("--ceiling %d: expected %d to %d", *ceiling, leastBPS, uint64(client.RateMax))
	}
	if *start == 0 {
		*start = *ceiling
	}
	if *start < leastBPS || *start > *ceiling {
		return fmt.Errorf("--start %d: expected %d to %d", *start, leastBPS, *ceiling)
	}
	if *floor == 0 {
		*floor = min(floorBPS, *start)
	}
	if *floor < leastBPS || *floor > *start {
		return fmt.Errorf("--floor %d: expected %d to %d", *floor, leastBPS, *start)
	}
	paqmd, err := client.Open(*socket)
	if err != nil {
		return err
	}
	defer paqmd.Close()
	ctx, stop := signal.NotifyContext(context.Background(), ends.Signals()...)
	defer stop()
	c := &connector{
		janus: &janus{
			api: base(*api), admin: base(*admin), adminSecret: *adminSecret, secret: *secret, room: *room,
		},
		client: paqmd, ceiling: *ceiling, floor: *floor, start: *start, granted: float64(*start),
		viewers: map[string]*viewer{},
	}
	return c.run(ctx, paqmd.Stream(ctx))
}

func main() {
	log.SetFlags(0)
	if err := start(); err != nil {
		log.Fatalln("paqm-janus:", err)
	}
}

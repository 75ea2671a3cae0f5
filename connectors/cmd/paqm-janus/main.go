// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// paqm-janus makes the publishers of a room of Janus (VideoRoom) send what the routers on the way to
// its viewers allow: a room has one picture of each publisher for all viewers, so the viewer who is
// allowed least decides. Janus tells publishers by REMB, as with the room's own bitrate.
//
//	paqm-janus --room 1234 --admin-secret S [--api-secret S] [--ceiling 2000000]
//
// Who is there, and by which addresses, is asked of the Admin API (handle_info); the rate is set by
// the plugin's request `configure` in the publishers' own names. Without advice it is the ceiling, and so
// it is when the program is stopped. Behind a NAT, 1:1 ones of clouds included, viewers are followed where
// it keeps ports; what goes through a relay is not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"paqm.example/client"
)

const (
	look     = time.Second           // between two looks at who is there
	editAt   = 50 * time.Millisecond // after advice: that for other viewers comes with it
	headers  = 1.05                  // of the rate at the IP level to that of payload, packets of 1200 bytes
	leastBPS = 64_000                // Janus takes less for a whole room as "no picture"
	leaving  = 3 * time.Second       // for the last word to publishers
	failures = 60                    // looks that fail in a row between two lines about them
	changed  = 0.02                  // part by which a rate must differ to be set
)

type viewer struct {
	number  uint64 // of the client
	pair    string
	streams int
	bps     uint64 // advice; 0: none
}

type connector struct {
	janus   *janus
	client  *client.Client
	ceiling uint64
	viewers map[string]*viewer // by handle
	set     map[string]float64 // bit/s, last told to each publisher, by handle
	refused map[string]string  // why a viewer who is there can't be followed, by handle
}

// rate is what each publisher may send, bit/s of payload.
func (c *connector) rate() float64 {
	rate := float64(c.ceiling)
	for _, v := range c.viewers {
		if v.bps != 0 {
			rate = min(rate, float64(v.bps)/headers/float64(v.streams))
		}
	}
	return max(rate, leastBPS)
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
	c.set = map[string]float64{}
	for name, rate := range before {
		if there.isUnknown(name) {
			c.set[name] = rate
		}
	}
	for _, name := range there.publishers {
		c.set[name] = before[name]
	}
	for name, v := range c.viewers {
		if now, ok := there.viewers[name]; ok && now.pair == v.pair {
			v.streams = now.streams
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
			c.viewers[name] = &viewer{number: number, pair: now.pair, streams: now.streams}
			continue
		}
		c.refused[name] = err.Error()
		if said[name] != err.Error() { // each is looked at every second
			log.Printf("paqm-janus: viewer %s: %v", name, err)
		}
	}
}

// add registers the flow of a pair of candidates as Janus prints it.
func (c *connector) add(pair string) (uint64, error) {
	local, remote, err := parsePair(pair)
	if err != nil {
		return 0, err
	}
	number, err := c.client.Add(client.Flow{
		Source: local, Destination: remote, CeilingBPS: client.RateMax,
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", pair, err)
	}
	return number, nil
}

func (c *connector) onAdvice(a client.Advice) {
	for name, v := range c.viewers {
		if v.number == a.Flow {
			v.bps = a.RateBPS
			if a.Cause == client.Refused {
				log.Printf("paqm-janus: viewer %s: paqmd refuses it: %v", name, a.Error)
			}
		}
	}
}

// tell sets the rate of publishers for whom it has changed. One who refuses keeps no other from being told.
func (c *connector) tell(ctx context.Context) (failed error) {
	rate := c.rate()
	for name, set := range c.set {
		if d := rate/set - 1; set != 0 && d < changed && d > -changed {
			continue
		}
		if err := c.janus.configure(ctx, name, uint64(rate)); err != nil {
			failed = errors.Join(failed, err)
			c.set[name] = 0 // which rate holds is not known: again next time
			continue
		}
		c.set[name] = rate
	}
	return failed
}

// leave gives publishers back the ceiling: nobody else would raise what was set last.
func (c *connector) leave() error {
	ctx, stop := context.WithTimeout(context.Background(), leaving)
	defer stop()
	c.viewers = nil
	return c.tell(ctx)
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
			if err := c.tell(ctx); err != nil && ctx.Err() == nil {
				log.Println("paqm-janus:", err)
			}
		}
	}
}

// ends are the signals that stop it: a terminal that is closed does, too, unless nohup says otherwise.
func ends() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

func start() error {
	api := flag.String("api", "http://127.0.0.1:8088/janus", "the Janus API")
	admin := flag.String("admin", "http://127.0.0.1:7088/admin", "the Admin API")
	adminSecret := flag.String("admin-secret", os.Getenv("JANUS_ADMIN_SECRET"), "its secret")
	room := flag.String("room", "", "number of the room, or its name with string_ids")
	secret := flag.String("api-secret", os.Getenv("JANUS_API_SECRET"), "of the Janus API, if it has one")
	ceiling := flag.Uint64("ceiling", 2_000_000, "of a publisher without advice, bit/s")
	socket := flag.String("paqmd", "", "paqmd's socket")
	flag.Parse()
	if *room == "" || flag.NArg() != 0 {
		return errors.New("expected --room ROOM and no other words")
	}
	if *ceiling < leastBPS || *ceiling > client.RateMax {
		return fmt.Errorf("--ceiling %d: expected %d to %d", *ceiling, leastBPS, uint64(client.RateMax))
	}
	paqmd, err := client.Open(*socket)
	if err != nil {
		return err
	}
	defer paqmd.Close()
	ctx, stop := signal.NotifyContext(context.Background(), ends()...)
	defer stop()
	c := &connector{
		janus: &janus{
			api: *api, admin: *admin, adminSecret: *adminSecret, secret: *secret, room: *room,
		},
		client: paqmd, ceiling: *ceiling, viewers: map[string]*viewer{},
	}
	return c.run(ctx, paqmd.Stream(ctx))
}

func main() {
	log.SetFlags(0)
	if err := start(); err != nil {
		log.Fatalln("paqm-janus:", err)
	}
}

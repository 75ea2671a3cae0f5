// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// Between viewers and the bridge: their channel (doc/web-sockets.md of jitsi-videobridge) passes through
// here, and what the bridge is to assume is put in.

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/websocket"

	"paqm.example/client"
)

const (
	channel    = "/colibri-ws/" // server, conference, endpoint; ?pwd=
	messageMax = 1 << 20
	dialMax    = 10 * time.Second
	pingEvery  = 15 * time.Second // as the bridge does
	tick       = time.Second
	pairsMax   = 4                // of one endpoint: a check may come from each of its interfaces
	pairKept   = 40 * time.Second // without a check; consent asks for one in 30 s (RFC 7675)
	tries      = 100              // checks of unknown names that are tried in a second
	namesMax   = 10_000
)

// pair is a way to an endpoint.
type pair struct {
	number uint64 // of the client
	seen   time.Time
	bps    uint64 // advice; 0: none
}

// endpoint is a viewer whose channel is open.
type endpoint struct {
	name     string
	password string
	bridge   *websocket.Conn
	pairs    map[[2]netip.AddrPort]*pair // from here to there
	rate     rate
	news     chan float64 // what the bridge is to assume and has not been told
	saying   sync.Mutex
}

// name is whose check it says it is. Another who says so from elsewhere is tried for himself.
type name struct {
	username string
	from     netip.AddrPort
}

type connector struct {
	bridge string // ws://host:port
	client *client.Client

	mu        sync.Mutex
	ceiling   uint64
	endpoints map[*endpoint]bool
	names     map[name]*endpoint // nil: nobody's, as far as was tried in this second
	tried     int                // in this second
}

// ServeHTTP joins a viewer to the bridge.
func (c *connector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, channel) || r.URL.Query().Get("pwd") == "" {
		http.Error(w, "expected "+channel+"SERVER/CONFERENCE/ENDPOINT?pwd=", http.StatusNotFound)
		return
	}
	origin := r.Header.Get("Origin")
	if _, err := url.ParseRequestURI(origin); err != nil {
		origin = "http://localhost"
	}
	config, err := websocket.NewConfig(c.bridge+r.URL.RequestURI(), origin)
	if err != nil {
		http.Error(w, "the address of the channel is none", http.StatusBadRequest)
		return
	}
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "User-Agent"} {
		if value := r.Header.Get(name); value != "" {
			config.Header.Set(name, value)
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), dialMax)
	bridge, err := config.DialContext(ctx)
	cancel()
	if err != nil {
		if dial := (*websocket.DialError)(nil); errors.As(err, &dial) {
			err = dial.Err // without the address: the password is in it
		}
		log.Printf("paqm-jitsi: %s: the bridge does not take the channel: %v", r.URL.Path, err)
		http.Error(w, "the bridge does not take this channel", http.StatusBadGateway)
		return
	}
	defer bridge.Close()
	e := &endpoint{
		name: strings.TrimPrefix(r.URL.Path, channel), password: r.URL.Query().Get("pwd"), bridge: bridge,
		pairs: map[[2]netip.AddrPort]*pair{}, rate: rate{ceiling: float64(c.ceiling)},
		news: make(chan float64, 1),
	}
	server := websocket.Server{
		Handshake: func(*websocket.Config, *http.Request) error { return nil }, // the bridge has judged it
		Handler:   func(viewer *websocket.Conn) { c.join(e, viewer) },
	}
	server.ServeHTTP(w, r)
}

// join passes messages on until either side has gone.
func (c *connector) join(e *endpoint, viewer *websocket.Conn) {
	c.mu.Lock()
	c.endpoints[e] = true
	c.names = map[name]*endpoint{} // those that were nobody's may be this one's
	c.mu.Unlock()
	defer c.forget(e)
	done := make(chan struct{}, 2)
	go func() {
		c.pump(viewer, e.bridge, func(text string) string {
			rest, wish, has := fromViewer(text)
			if has {
				c.mu.Lock()
				e.rate.wish = wish
				c.mu.Unlock()
			}
			return rest
		})
		done <- struct{}{}
	}()
	go func() {
		c.pump(e.bridge, viewer, func(text string) string {
			if estimate, has := fromBridge(text); has {
				c.mu.Lock()
				e.rate.estimate = estimate
				c.mu.Unlock()
			}
			return text
		})
		done <- struct{}{}
	}()
	c.mu.Lock()
	c.tell(e, time.Now())
	c.mu.Unlock()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case <-done:
			viewer.Close()
			e.bridge.Close()
			<-done
			return
		case <-ping.C:
			for _, side := range []*websocket.Conn{viewer, e.bridge} {
				if write(side, websocket.PingFrame, nil) != nil {
					side.Close()
				}
			}
		}
	}
}

// heard reads a message; pings are answered, and a dead connection is noticed by TCP's keep-alive.
func heard(from *websocket.Conn) (kind byte, text []byte, err error) {
	var got []byte
	codec := websocket.Codec{Unmarshal: func(data []byte, payload byte, _ any) error {
		kind, got = payload, data
		return nil
	}}
	err = codec.Receive(from, nil)
	return kind, got, err
}

func write(to *websocket.Conn, kind byte, text []byte) error {
	codec := websocket.Codec{Marshal: func(any) ([]byte, byte, error) { return text, kind, nil }}
	_ = to.SetWriteDeadline(time.Now().Add(dialMax)) // one that does not read holds nobody up
	return codec.Send(to, nil)
}

func (c *connector) pump(from, to *websocket.Conn, change func(string) string) {
	from.MaxPayloadBytes = messageMax
	for {
		kind, text, err := heard(from)
		if err != nil {
			return
		}
		if kind == websocket.TextFrame {
			text = []byte(change(string(text)))
		}
		if write(to, kind, text) != nil {
			return
		}
	}
}

func (c *connector) forget(e *endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.endpoints, e)
	for who, of := range c.names {
		if of == e {
			delete(c.names, who)
		}
	}
	for _, p := range e.pairs {
		_ = c.client.Remove(p.number)
	}
}

// onCheck learns the way to an endpoint from one of its checks.
func (c *connector) onCheck(k check) {
	c.mu.Lock()
	defer c.mu.Unlock()
	who := name{k.username, k.from}
	e, known := c.names[who]
	if !known {
		if c.tried++; c.tried > tries || len(c.names) > namesMax {
			return
		}
		for one := range c.endpoints {
			if k.by(one.password) {
				e = one
			}
		}
		c.names[who] = e
	}
	if e == nil || known && !k.by(e.password) {
		return
	}
	way := [2]netip.AddrPort{k.to, k.from}
	if p := e.pairs[way]; p != nil {
		p.seen = time.Now()
		return
	}
	if len(e.pairs) >= pairsMax {
		return
	}
	number, err := c.client.Add(client.Flow{Source: k.to, Destination: k.from, CeilingBPS: client.RateMax})
	if err != nil {
		log.Printf("paqm-jitsi: %s, %v: %v", e.name, way, err)
		return
	}
	e.pairs[way] = &pair{number: number, seen: time.Now()}
}

func (c *connector) onAdvice(a client.Advice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := range c.endpoints {
		for _, p := range e.pairs {
			if p.number != a.Flow {
				continue
			}
			if a.Cause == client.Refused {
				log.Printf("paqm-jitsi: %s: paqmd refuses it: %v", e.name, a.Error)
			}
			p.bps = a.RateBPS
			c.tell(e, time.Now())
			return
		}
	}
}

// tell has the bridge told what has changed. The lock is held.
func (c *connector) tell(e *endpoint, now time.Time) {
	e.rate.advice = 0
	for _, p := range e.pairs { // packets go one way, and only what is sent is advised on
		if bps := float64(p.bps); bps != 0 && (e.rate.advice == 0 || bps < e.rate.advice) {
			e.rate.advice = bps
		}
	}
	if bps, ok := e.rate.next(now); ok {
		e.assume(bps)
		go e.say()
	}
}

// assume makes this the newest that the bridge is to be told. The lock is held.
func (e *endpoint) assume(bps float64) {
	select {
	case <-e.news:
	default:
	}
	e.news <- bps
}

// say tells the bridge the newest, unless another has. It is called without the lock: a bridge that takes
// nothing for seconds, and is given up then, holds nobody else up.
func (e *endpoint) say() {
	e.saying.Lock()
	defer e.saying.Unlock()
	select {
	case bps := <-e.news:
		if write(e.bridge, websocket.TextFrame, []byte(message(bps))) != nil {
			e.bridge.Close()
		}
	default:
	}
}

// look lets rates rise and gives ways up.
func (c *connector) look(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried = 0
	for who, of := range c.names {
		if of == nil {
			delete(c.names, who)
		}
	}
	for e := range c.endpoints {
		for way, p := range e.pairs {
			if now.Sub(p.seen) > pairKept {
				_ = c.client.Remove(p.number)
				delete(e.pairs, way)
			}
		}
		c.tell(e, now)
	}
}

// leave gives the bridge its own estimate back.
func (c *connector) leave() {
	var told sync.WaitGroup
	c.mu.Lock()
	for e := range c.endpoints {
		e.assume(own)
		told.Add(1)
		go func() {
			defer told.Done()
			e.say()
		}()
	}
	c.mu.Unlock()
	told.Wait()
}

func (c *connector) run(ctx context.Context) error {
	advice := c.client.Stream(ctx)
	again := time.NewTicker(tick)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			c.leave()
			return nil
		case a := <-advice:
			c.onAdvice(a)
		case <-again.C:
			c.look(time.Now())
		}
	}
}

// where checks the bridge's address.
func where(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "ws" && u.Scheme != "wss") || u.Host == "" || u.Path != "" {
		return "", fmt.Errorf("--bridge %s: expected ws://HOST:PORT", text)
	}
	return text, nil
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// Between viewers and the bridge: their channel (doc/web-sockets.md of jitsi-videobridge) passes through
// here, and what the bridge is to assume is put in.

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/websocket"

	"paqm.example/client"
)

const (
	channel    = "/colibri-ws/" // server, conference, endpoint; ?pwd=
	messageMax = 1 << 20
	final      = 0x80 // in the first byte of a message's last frame (RFC 6455, 5.2)
	dialMax    = 10 * time.Second
	pingEvery  = 15 * time.Second // as the bridge does
	tick       = time.Second
	pairsMax   = 4                // of one endpoint: a check may come from each of its interfaces
	pairKept   = 40 * time.Second // without a check; consent asks for one in 30 s (RFC 7675)
	tries      = 100              // checks of unknown viewers that are tried in a second
	passedTold = time.Minute      // between two lines about those that are not
)

// way is where an endpoint's packets go: from here, to there.
type way [2]netip.AddrPort

// pair is a way that is followed.
type pair struct {
	number uint64 // of the client
	seen   time.Time
	bps    uint64 // advice; 0: none
}

// endpoint is a viewer whose channel is open.
type endpoint struct {
	name     string
	password string
	username string // in its checks; "": there was none yet
	bridge   *websocket.Conn
	pairs    map[way]*pair
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
	ways      map[way]*endpoint
	names     map[string]*endpoint // by the name in its first check
	nobodys   map[name]bool        // as far as was tried in this second
	tried     int                  // in this second
	passed    int                  // over, since that was told last
	told      time.Time
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
	bridge, err := dial(r.Context(), config)
	if err != nil {
		log.Printf("paqm-jitsi: %s: the bridge does not take the channel: %v", r.URL.Path, err)
		http.Error(w, "the bridge does not take this channel", http.StatusBadGateway)
		return
	}
	defer bridge.Close()
	e := &endpoint{
		name: strings.TrimPrefix(r.URL.Path, channel), password: r.URL.Query().Get("pwd"), bridge: bridge,
		pairs: map[way]*pair{}, rate: rate{ceiling: float64(c.ceiling)},
		news: make(chan float64, 1),
	}
	server := websocket.Server{
		Handshake: func(*websocket.Config, *http.Request) error { return nil }, // the bridge has judged it
		Handler:   func(viewer *websocket.Conn) { c.join(e, viewer) },
	}
	server.ServeHTTP(w, r)
}

func (c *connector) enter(e *endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoints[e] = true
	clear(c.nobodys) // they may be this one's
}

// join passes messages on until either side has gone.
func (c *connector) join(e *endpoint, viewer *websocket.Conn) {
	c.enter(e)
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
			c.forget(e) // no advice any more
			c.release(e)
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

// heard reads a message, of one frame or several, which the package would take for one each; pings are
// answered, and a dead connection is noticed by TCP's keep-alive. Nobody else may read.
func heard(from *websocket.Conn) (kind byte, text []byte, err error) {
	for {
		frame, err := from.NewFrameReader()
		if err != nil {
			return 0, nil, err
		}
		first := [1]byte{}
		if _, err = io.ReadFull(frame.HeaderReader(), first[:]); err != nil {
			return 0, nil, err
		}
		if frame.PayloadType() == websocket.PingFrame { // write()'s deadline holds for the answer, too, and is over
			_ = from.SetWriteDeadline(time.Now().Add(dialMax))
		}
		if frame, err = from.HandleFrame(frame); err != nil {
			return 0, nil, err
		}
		if frame == nil { // a ping, or its answer
			continue
		}
		part, err := io.ReadAll(io.LimitReader(frame, int64(messageMax-len(text)+1)))
		if err != nil {
			return 0, nil, err
		}
		if text = append(text, part...); len(text) > messageMax {
			return 0, nil, websocket.ErrFrameTooLarge
		}
		if first[0]&final != 0 {
			return frame.PayloadType(), text, nil
		}
	}
}

func write(to *websocket.Conn, kind byte, text []byte) error {
	codec := websocket.Codec{Marshal: func(any) ([]byte, byte, error) { return text, kind, nil }}
	_ = to.SetWriteDeadline(time.Now().Add(dialMax)) // one that does not read holds nobody up
	return codec.Send(to, nil)
}

func (c *connector) pump(from, to *websocket.Conn, change func(string) string) {
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
	if c.names[e.username] == e {
		delete(c.names, e.username)
	}
	for to := range e.pairs {
		c.drop(e, to)
	}
}

// whose finds who has signed a check. Known ways and names come first, outside of the tries: anybody can
// send checks of nobody, and must not take advice from viewers who have some.
func (c *connector) whose(k check) *endpoint {
	for _, e := range []*endpoint{c.ways[way{k.to, k.from}], c.names[k.username]} {
		if e != nil && k.by(e.password) {
			return e
		}
	}
	who := name{k.username, k.from}
	if c.nobodys[who] {
		return nil
	}
	if c.tried++; c.tried > tries {
		c.passed++
		return nil
	}
	for e := range c.endpoints {
		if k.by(e.password) {
			return e
		}
	}
	c.nobodys[who] = true
	return nil
}

// onCheck learns the way to an endpoint from one of its checks.
func (c *connector) onCheck(k check) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.whose(k)
	if e == nil {
		return
	}
	to := way{k.to, k.from}
	if p := e.pairs[to]; p != nil {
		p.seen = time.Now()
		return
	}
	if len(e.pairs) >= pairsMax {
		return
	}
	number, err := c.client.Add(client.Flow{Source: k.to, Destination: k.from, CeilingBPS: client.RateMax})
	if err != nil {
		log.Printf("paqm-jitsi: %s, %v: %v", e.name, to, err)
		return
	}
	e.pairs[to] = &pair{number: number, seen: time.Now()}
	c.ways[to] = e
	if e.username == "" && c.names[k.username] == nil {
		e.username = k.username
		c.names[k.username] = e
	}
}

// drop gives a way up. The lock is held.
func (c *connector) drop(e *endpoint, to way) {
	_ = c.client.Remove(e.pairs[to].number)
	delete(e.pairs, to)
	if c.ways[to] == e {
		delete(c.ways, to)
	}
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

// release has the bridge assume what it would without advice: a viewer whose channel has ended may go on being
// sent pictures.
func (c *connector) release(e *endpoint) {
	c.mu.Lock()
	bps := e.rate.without()
	same := bps == e.rate.told
	if !same {
		e.assume(bps)
	}
	c.mu.Unlock()
	if !same {
		e.say()
	}
}

// look lets rates rise and gives ways up.
func (c *connector) look(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried = 0
	clear(c.nobodys)
	if c.passed > 0 && now.Sub(c.told) >= passedTold {
		log.Printf("paqm-jitsi: %d checks of unknown viewers were not looked at, above %d a second",
			c.passed, tries)
		c.passed, c.told = 0, now
	}
	for e := range c.endpoints {
		for to, p := range e.pairs {
			if now.Sub(p.seen) > pairKept {
				c.drop(e, to)
			}
		}
		c.tell(e, now)
	}
}

// leave takes back what the bridge was told.
func (c *connector) leave() {
	var told sync.WaitGroup
	c.mu.Lock()
	for e := range c.endpoints {
		e.assume(e.rate.without())
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
	if err != nil || (u.Scheme != "ws" && u.Scheme != "wss") || u.Host == "" || text != u.Scheme+"://"+u.Host {
		return "", fmt.Errorf("--bridge %s: expected ws://HOST:PORT", text)
	}
	if at, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || at == 0) {
		return "", fmt.Errorf("--bridge %s: expected a port of 1 to 65535", text)
	}
	return text, nil
}

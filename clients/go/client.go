// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// Package client follows the rate advice of P-AQM routers: a client of paqmd without cgo and
// without dependencies. The rules are those of libpaqmclient (docs/api-libpaqmclient.md): the same
// causes, grace and pauses.
//
// A rate is an upper bound in bit/s at the IP level, headers included. Send no more; follow it
// within a frame; keep your own congestion control, and rely on it alone while there is no advice
// (RateBPS 0). paqmd may be absent, start later or be restarted.
package client

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// Path is paqmd's socket, overridden by $PAQM_SOCKET.
	Path = "/run/paqmd/client.sock"
	// Grace is how long an allowance outlives the connection that gave it.
	Grace = 3 * time.Second

	// Advice holds for three periods of its router, within these limits. Then paqmd says that it has
	// expired; if it does not for lifeMore, it hangs.
	lifeMin  = 3 * time.Second
	lifeMax  = 30 * time.Second
	lifeMore = time.Second
	endsTick = time.Second // at most between two looks at what has ended: timers do not count sleep

	retryPause = 500 * time.Millisecond
	againMin   = 500 * time.Millisecond
	againMax   = 8 * time.Second
	otherMax   = 256 // records that wait, of those that may be lost
)

// ErrClosed is what Next returns after Close.
var ErrClosed = errors.New("the client is closed")

type flow struct {
	told   Flow
	advice Advice
	news   bool
	untold bool        // it waits to be registered
	known  bool        // the connection was told of it
	again  *time.Timer // when to register again
	pause  time.Duration
	ends   time.Duration // when the advice ends unless it is renewed, by Client.now; 0: there is none
	lost   bool          // the connection that gave it has ended
}

// Client is a client of paqmd. Its methods may be called by several goroutines.
type Client struct {
	path string
	now  func() time.Duration

	mu      sync.Mutex
	room    *sync.Cond // something is to be told, or the connection has changed
	conn    *net.UnixConn
	trouble string
	asked   time.Time // when the connection was told of a flow first
	heard   bool      // it has told something: systemd alone accepts, too
	flows   map[uint64]*flow
	last    uint64
	untold  []uint64 // flows to be registered
	other   [][]byte // records to be sent before
	news    []uint64
	closed  bool
	ends    *time.Timer // looks at what has ended; nil: there is nothing that ends
	done    chan struct{}
	wake    chan struct{} // there is news
}

// Open makes a client; path "": $PAQM_SOCKET, else Path. It need not be there yet.
func Open(path string) (*Client, error) {
	if path == "" {
		path = os.Getenv("PAQM_SOCKET")
	}
	if path == "" {
		path = Path
	}
	if len(path) >= len(syscall.RawSockaddrUnix{}.Path) {
		return nil, syscall.ENAMETOOLONG
	}
	c := &Client{
		path:    path,
		now:     boottime,
		flows:   map[uint64]*flow{},
		trouble: "not connected yet",
		done:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
	}
	c.room = sync.NewCond(&c.mu)
	c.connect()
	return c, nil
}

// Close disconnects; paqmd forgets the flows.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	close(c.done)
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
	for _, f := range c.flows {
		f.stop()
	}
	if c.ends != nil {
		c.ends.Stop()
	}
	c.room.Broadcast()
	return nil
}

// Add adds a flow and returns its number. The answer comes as advice. A refusal because of others
// (another client has these packets, no room) is told once and tried again, after half a second and
// then at increasing intervals of up to 8 s. Errors: EINVAL (no address, a port or limit out of
// range), EAFNOSUPPORT (from IPv4 to IPv6 or the other way), ErrClosed.
func (c *Client) Add(f Flow) (uint64, error) {
	if err := f.fault(); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, ErrClosed
	}
	c.last++
	c.flows[c.last] = &flow{told: f, advice: Advice{Flow: c.last}}
	c.tell(c.last)
	return c.last, nil
}

// Change changes limits and timing of a flow; its addresses and SSRC stay. Errors: EINVAL, ENOENT.
func (c *Client) Change(number uint64, change func(*Flow)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flows[number]
	if f == nil {
		return syscall.ENOENT
	}
	told := f.told
	change(&told)
	told.Source, told.Destination, told.SSRC = f.told.Source, f.told.Destination, f.told.SSRC
	if err := told.fault(); err != nil {
		return err
	}
	f.told = told
	f.stopAgain()
	c.tell(number)
	return nil
}

// Limits changes the limits of a flow, bit/s. Errors: EINVAL, ENOENT.
func (c *Client) Limits(number, floorBPS, ceilingBPS uint64) error {
	return c.Change(number, func(f *Flow) { f.FloorBPS, f.CeilingBPS = floorBPS, ceilingBPS })
}

// Remove says that a flow is no longer sent. Error: ENOENT.
func (c *Client) Remove(number uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flows[number]
	if f == nil {
		return syscall.ENOENT
	}
	f.stop()
	delete(c.flows, number)
	if f.untold {
		c.forget(number)
	}
	// Of what it was never told paqmd need not hear: else records would pile up while it hangs.
	if c.conn != nil && f.known {
		c.other = append(c.other, encodeUnregister(number))
		c.room.Broadcast()
	}
	return nil
}

// Status reports how the sender followed, for paqmctl: bit/s sent, number of the group of pictures,
// mean quantizer. Lost if paqmd is slow. Errors: ENOENT, ENOTCONN, EAGAIN.
func (c *Client) Status(number, bps uint64, gop, qp uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flows[number] == nil {
		return syscall.ENOENT
	}
	if c.conn == nil {
		return syscall.ENOTCONN
	}
	if len(c.other) >= otherMax {
		return syscall.EAGAIN
	}
	c.other = append(c.other, encodeStatus(number, bps, gop, qp))
	c.room.Broadcast()
	return nil
}

// Trouble says why paqmd is not connected, or that it does not answer; "" if it does.
func (c *Client) Trouble() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil && !c.heard && !c.asked.IsZero() && time.Since(c.asked) >= Grace {
		return "it does not answer"
	}
	return c.trouble
}

// Next waits for the next update. Of several rates for a flow only the newest is told. Errors: of
// the context, ErrClosed.
func (c *Client) Next(ctx context.Context) (Advice, error) {
	for {
		if a, ok := c.take(); ok {
			return a, nil
		}
		select {
		case <-c.wake:
		case <-c.done:
			return Advice{}, ErrClosed
		case <-ctx.Done():
			return Advice{}, ctx.Err()
		}
	}
}

// Stream tells the updates that Next does on a channel, for those who wait for other things, too. It
// ends, without closing the channel, when the context or the client does.
func (c *Client) Stream(ctx context.Context) <-chan Advice {
	stream := make(chan Advice)
	go func() {
		for {
			a, err := c.Next(ctx)
			if err != nil {
				return
			}
			select {
			case stream <- a:
			case <-c.done:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return stream
}

func (c *Client) take() (Advice, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.news) > 0 {
		f := c.flows[c.news[0]]
		c.news = c.news[1:]
		if f == nil || !f.news {
			continue
		}
		f.news = false
		if len(c.news) > 0 {
			c.wakeUp() // another goroutine may wait
		}
		return f.advice, true
	}
	return Advice{}, false
}

func (c *Client) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// The rest is called with the lock held, unless it says otherwise.

func (f *flow) stopAgain() {
	if f.again != nil {
		f.again.Stop()
		f.again = nil
	}
}

// keep says that nothing ends the advice of now any more.
func (f *flow) keep() {
	f.ends, f.lost = 0, false
}

func (f *flow) stop() {
	f.stopAgain()
	f.keep()
}

func (c *Client) tell(number uint64) {
	if f := c.flows[number]; c.conn != nil && !f.untold {
		f.untold = true
		c.untold = append(c.untold, number)
		c.room.Broadcast()
	}
}

// forget takes a flow out of those to be registered.
func (c *Client) forget(number uint64) {
	for i, n := range c.untold {
		if n == number {
			c.untold = append(c.untold[:i], c.untold[i+1:]...)
			return
		}
	}
}

func (c *Client) tellOf(f *flow, a Advice) {
	a.Flow = f.advice.Flow
	f.advice = a
	if !f.news {
		f.news = true
		c.news = append(c.news, a.Flow)
	}
	c.wakeUp()
}

// connect is called without the lock.
func (c *Client) connect() {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: c.path, Net: "unixpacket"})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		if err == nil {
			conn.Close()
		}
		return
	}
	if err != nil {
		c.trouble = err.Error()
		time.AfterFunc(retryPause, c.connect)
		return
	}
	c.conn, c.trouble, c.other = conn, "", nil
	c.asked, c.heard = time.Time{}, false
	c.untold = c.untold[:0]
	for number := uint64(1); number <= c.last; number++ {
		if f := c.flows[number]; f != nil {
			f.untold, f.known = true, false
			c.untold = append(c.untold, number)
		}
	}
	go c.write(conn)
	go c.read(conn)
}

// lose is called without the lock, perhaps twice for a connection.
func (c *Client) lose(conn *net.UnixConn, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != conn || c.closed {
		return
	}
	conn.Close()
	c.conn, c.trouble = nil, why.Error()
	for _, f := range c.flows {
		f.pause = 0
		f.stopAgain()
		// A connection that has told nothing prolongs nothing.
		if f.advice.RateBPS != 0 && !f.lost {
			c.endLater(f, Grace)
			f.lost = true
		}
	}
	c.room.Broadcast()
	time.AfterFunc(retryPause, c.connect)
}

// life is how long paqmd lets it hold if no other comes.
func (a *Advice) life() time.Duration {
	life := 3 * a.Period
	if life < lifeMin {
		return lifeMin
	}
	if life > lifeMax {
		return lifeMax
	}
	return life
}

// endLater ends advice that is not renewed within this time, of more than endsTick.
func (c *Client) endLater(f *flow, after time.Duration) {
	f.keep()
	f.ends = c.now() + after
	if c.ends == nil {
		c.ends = time.AfterFunc(endsTick, c.end)
	}
}

// end ends what has not been renewed in time. It is called without the lock.
func (c *Client) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	now, wait := c.now(), time.Duration(0)
	for _, f := range c.flows {
		if f.ends == 0 {
			continue
		}
		if left := f.ends - now; left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		cause := Lost
		if f.lost && c.conn != nil && c.heard {
			cause = None // another paqmd that knows of no advice is no loss
		}
		f.keep()
		c.tellOf(f, Advice{Cause: cause})
	}
	if wait > endsTick {
		wait = endsTick
	}
	if c.ends = nil; wait > 0 {
		c.ends = time.AfterFunc(wait, c.end)
	}
}

// write tells paqmd what it does not know yet; flows that are gone come first: others may have their
// ports. It is called without the lock.
func (c *Client) write(conn *net.UnixConn) {
	for {
		c.mu.Lock()
		for c.conn == conn && len(c.other) == 0 && len(c.untold) == 0 {
			c.room.Wait()
		}
		if c.conn != conn {
			c.mu.Unlock()
			return
		}
		var record []byte
		if len(c.other) > 0 {
			record, c.other = c.other[0], c.other[1:]
		} else {
			number := c.untold[0]
			c.untold = c.untold[1:]
			if f := c.flows[number]; f != nil {
				f.untold, f.known = false, true
				if c.asked.IsZero() { // paqmd answers each registration at once
					c.asked = time.Now()
				}
				record = encodeRegister(number, &f.told)
			}
		}
		c.mu.Unlock()
		if record == nil {
			continue
		}
		if _, err := conn.Write(record); err != nil {
			c.lose(conn, err)
			return
		}
	}
}

// read takes what paqmd sends. It is called without the lock.
func (c *Client) read(conn *net.UnixConn) {
	b := make([]byte, recordMax+1)
	for {
		n, err := conn.Read(b)
		if err == nil && n == 0 {
			err = errors.New("it closed the connection")
		}
		if err != nil {
			c.lose(conn, err)
			return
		}
		answer, advice, err := decode(b[:n])
		if err != nil {
			continue // of a later release, perhaps
		}
		c.mu.Lock()
		c.heard = c.heard || c.conn == conn
		if answer != nil {
			c.onRegistered(answer)
		} else {
			c.onRate(advice)
		}
		c.mu.Unlock()
	}
}

func (c *Client) onRate(a *Advice) {
	f := c.flows[a.Flow]
	// A paqmd that has just started knows nothing yet: what held before is still the best.
	if f == nil || (a.Cause == None && f.advice.RateBPS != 0 && f.lost) {
		return
	}
	f.keep()
	if a.RateBPS != 0 {
		c.endLater(f, a.life()+lifeMore)
	}
	c.tellOf(f, *a)
}

func (c *Client) onRegistered(r *registered) {
	f := c.flows[r.cookie]
	if f == nil {
		return
	}
	f.stopAgain()
	if r.err == 0 {
		f.pause = 0
		return
	}
	// Any other error lies in the registration itself, and remains.
	if r.err != syscall.EINVAL && r.err != syscall.EAFNOSUPPORT {
		c.askLater(r.cookie, f)
	}
	if f.advice.Cause == Refused && f.advice.Error == r.err {
		return
	}
	f.keep()
	c.tellOf(f, Advice{Cause: Refused, Error: r.err})
}

// askLater registers a flow again: others may make room, or give up these packets.
func (c *Client) askLater(number uint64, f *flow) {
	f.pause *= 2
	if f.pause == 0 {
		f.pause = againMin
	}
	if f.pause > againMax {
		f.pause = againMax
	}
	var timer *time.Timer
	timer = time.AfterFunc(f.pause, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if f.again == timer && !c.closed && c.flows[number] == f {
			f.again = nil
			c.tell(number)
		}
	})
	f.again = timer
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// The way to the bridge. The package keeps all of an answer's head, however long that is.

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/net/websocket"
)

const headMax = 64 << 10 // bytes

var errHead = errors.New("its answer's head has no end")

// head is a connection that ends an answer whose head is too long.
type head struct {
	net.Conn
	left atomic.Int64 // bytes that may still come
}

func (h *head) Read(p []byte) (int, error) {
	left := h.left.Load()
	if left <= 0 {
		return 0, errHead
	}
	n, err := h.Conn.Read(p[:min(int64(len(p)), left)])
	h.left.Add(-int64(n))
	return n, err
}

// dial opens a channel to the bridge, within dialMax.
func dial(ctx context.Context, config *websocket.Config) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialMax)
	defer cancel()
	to := config.Location
	port, dialer := "80", interface {
		DialContext(context.Context, string, string) (net.Conn, error)
	}(&net.Dialer{})
	if to.Scheme == "wss" {
		port, dialer = "443", &tls.Dialer{}
	}
	if to.Port() != "" {
		port = to.Port()
	}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(to.Hostname(), port))
	if err != nil {
		return nil, err
	}
	limited := &head{Conn: conn}
	limited.left.Store(headMax)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	bridge, err := websocket.NewClient(config, limited)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	limited.left.Store(math.MaxInt64) // the handshake is over
	return bridge, nil
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// paqm-jitsi makes viewers of a Jitsi Videobridge follow P-AQM routers: what the routers on the way to a
// viewer allow is what the bridge assumes as his bandwidth (assumedBandwidthBps). The bridge takes that
// from the viewer's own channel only, so this stands between the web server and the bridge:
//
//	paqm-jitsi [--listen 127.0.0.1:9091] [--bridge ws://127.0.0.1:9090] [--port 10000]
//	           [--ceiling 20000000] [--paqmd SOCKET]
//
// and the web server passes /colibri-ws/ to --listen instead of to the bridge, of which the setting
// videobridge.cc.assumed-bandwidth-limit must be at least the ceiling. Which packets are a viewer's is
// learned from the connectivity checks that arrive at the bridge's media port: they are signed with the
// password that is in the address of the channel.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"time"

	"paqm.example/client"
	"paqm.example/connectors/ends"
)

func start() error {
	address := flag.String("listen", "127.0.0.1:9091", "where the web server passes channels to")
	bridge := flag.String("bridge", "ws://127.0.0.1:9090", "the bridge's public HTTP server")
	port := flag.Int("port", 10000, "UDP port of the bridge's media (videobridge.ice.udp.port)")
	ceiling := flag.Uint64("ceiling", 20_000_000, "most that advice counts, bit/s; without it the bridge decides")
	socket := flag.String("paqmd", "", "paqmd's socket")
	flag.Parse()
	if flag.NArg() != 0 {
		return fmt.Errorf("%q: expected options only", flag.Arg(0))
	}
	if *port < 1 || *port > 65535 {
		return fmt.Errorf("--port %d: expected 1 to 65535", *port)
	}
	if *ceiling == 0 || *ceiling > client.RateMax {
		return fmt.Errorf("--ceiling %d: expected 1 to %d", *ceiling, uint64(client.RateMax))
	}
	to, err := where(*bridge)
	if err != nil {
		return err
	}
	paqmd, err := client.Open(*socket)
	if err != nil {
		return err
	}
	defer paqmd.Close()
	fd, err := listen(*port)
	if err != nil {
		return err
	}
	c := &connector{
		bridge: to, client: paqmd, ceiling: *ceiling,
		endpoints: map[*endpoint]bool{}, ways: map[way]*endpoint{}, names: map[string]*endpoint{},
		nobodys: map[name]bool{},
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends.Signals()...)
	defer stop()
	web := &http.Server{Addr: *address, Handler: c, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 2)
	go func() { failed <- checks(fd, c.onCheck) }()
	go func() { failed <- web.ListenAndServe() }()
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx) }()
	select {
	case err = <-failed:
		stop()
		<-ended
	case err = <-ended:
	}
	_ = web.Close()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

func main() {
	log.SetFlags(0)
	if err := start(); err != nil {
		log.Fatalln("paqm-jitsi:", err)
	}
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package ends

import (
	"context"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

func TestEnds(t *testing.T) {
	for _, one := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		ctx, stop := signal.NotifyContext(context.Background(), Signals()...)
		if err := syscall.Kill(syscall.Getpid(), one); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
			t.Fatalf("%v: it goes on", one)
		}
		stop()
	}
}

func TestNohup(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	for _, one := range Signals() {
		if one == syscall.SIGHUP {
			t.Fatal("SIGHUP ends it")
		}
	}
}

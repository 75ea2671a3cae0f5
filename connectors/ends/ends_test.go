// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package ends

import (
	"context"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

func TestATerminalThatIsClosed(t *testing.T) {
	ctx, stop := signal.NotifyContext(context.Background(), Signals()...)
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
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

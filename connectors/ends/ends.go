// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// Package ends says what ends a connector, so that it can take back what it has told its server.
package ends

import (
	"os"
	"os/signal"
	"syscall"
)

// Signals stop a connector. A terminal that is closed does, too, unless nohup says otherwise: the Go
// runtime would end the program at once, and the server keep the last rates for ever.
func Signals() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

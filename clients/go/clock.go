// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package client

import (
	"syscall"
	"time"
	"unsafe"
)

const clockBoottime = 7

// boottime goes on while the machine sleeps: no advice outlives that. Go's timers and time.Time stand
// still meanwhile.
func boottime() time.Duration {
	var t syscall.Timespec
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}

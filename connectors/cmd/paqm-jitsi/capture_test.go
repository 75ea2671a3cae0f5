// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// alone puts this thread into a network of its own, whose loopback is up. It is not used for anything else.
func alone(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		t.Skip("needs root: ", err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	request := struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP}
	copy(request.name[:], "lo")
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS,
		uintptr(unsafe.Pointer(&request))); e != 0 {
		t.Fatal(e)
	}
}

// Nothing but checks that arrive at the port is taken, whatever else comes while the socket is opened.
func TestOnlyThePortFromTheBeginning(t *testing.T) {
	alone(t)
	to, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	from, err := net.DialUDP("udp", nil, to.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	var ends atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !ends.Load() {
			_, _ = from.Write(request(t))
			time.Sleep(10 * time.Microsecond)
		}
	}()
	defer func() { <-ended }()
	defer ends.Store(true)
	buffer := make([]byte, packetMax)
	for range 50 {
		fd, err := listen(10000)
		if err != nil {
			t.Fatal(err)
		}
		n, _, err := syscall.Recvfrom(fd, buffer, syscall.MSG_DONTWAIT)
		syscall.Close(fd)
		if err == nil {
			t.Fatalf("%d bytes to another port are taken", n)
		}
	}
}

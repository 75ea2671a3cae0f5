// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// Checks as they arrive at the bridge's port. A packet socket: it takes nothing from the bridge.

import (
	"encoding/binary"
	"fmt"
	"syscall"
)

const (
	packetMax = 1500
	accept    = packetMax
)

// filter lets binding requests to a UDP port pass, from their IP header: IPv4 without fragments, and IPv6
// without extension headers.
func filter(port int) []syscall.SockFilter {
	const (
		ldb, ldh, ld = syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, syscall.BPF_LD | syscall.BPF_H |
			syscall.BPF_ABS, syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS
		ldhX, ldX = syscall.BPF_LD | syscall.BPF_H | syscall.BPF_IND, syscall.BPF_LD | syscall.BPF_W | syscall.BPF_IND
		header    = syscall.BPF_LDX | syscall.BPF_B | syscall.BPF_MSH
		and       = syscall.BPF_ALU | syscall.BPF_AND | syscall.BPF_K
		same      = syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K
		set       = syscall.BPF_JMP | syscall.BPF_JSET | syscall.BPF_K
		ret       = syscall.BPF_RET | syscall.BPF_K
	)
	op := func(code int, k uint32, yes, no uint8) syscall.SockFilter {
		return syscall.SockFilter{Code: uint16(code), K: k, Jt: yes, Jf: no}
	}
	return []syscall.SockFilter{
		op(ldb, 0, 0, 0), op(and, 0xf0, 0, 0), // 0, 1
		op(same, 0x60, 12, 0), op(same, 0x40, 0, 19), // 2: IPv6 to 15; 3: neither to 23
		op(ldb, 9, 0, 0), op(same, protocolUDP, 0, 17), // 4, 5
		op(ldh, 6, 0, 0), op(set, 0x3fff, 15, 0), // 6, 7
		op(header, 0, 0, 0),                              // 8
		op(ldhX, 2, 0, 0), op(same, uint32(port), 0, 12), // 9, 10
		op(ldhX, 8, 0, 0), op(same, stunBinding, 0, 10), // 11, 12
		op(ldX, 12, 0, 0), op(same, stunCookie, 9, 8), // 13, 14
		op(ldb, 6, 0, 0), op(same, protocolUDP, 0, 6), // 15, 16
		op(ldh, 42, 0, 0), op(same, uint32(port), 0, 4), // 17, 18
		op(ldh, 48, 0, 0), op(same, stunBinding, 0, 2), // 19, 20
		op(ld, 52, 0, 0), op(same, stunCookie, 1, 0), // 21, 22
		op(ret, 0, 0, 0), op(ret, accept, 0, 0), // 23, 24
	}
}

// listen opens the socket: of no protocol, so that nothing comes before the filter is there.
func listen(port int) (int, error) {
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("packet socket: %w (it needs CAP_NET_RAW)", err)
	}
	if err := syscall.AttachLsf(fd, filter(port)); err != nil {
		syscall.Close(fd)
		return 0, fmt.Errorf("packet socket: filter: %w", err)
	}
	all := binary.NativeEndian.Uint16([]byte{0, syscall.ETH_P_ALL})
	if err := syscall.Bind(fd, &syscall.SockaddrLinklayer{Protocol: all}); err != nil {
		syscall.Close(fd)
		return 0, fmt.Errorf("packet socket: %w", err)
	}
	return fd, nil
}

// checks hands on what arrives, until the socket fails.
func checks(fd int, found func(check)) error {
	buffer := make([]byte, packetMax)
	for {
		n, from, err := syscall.Recvfrom(fd, buffer, 0)
		if err == syscall.EINTR || err == syscall.ENETDOWN { // a link that goes down is told here, too
			continue
		}
		if err != nil {
			return fmt.Errorf("packet socket: %w", err)
		}
		if link, ok := from.(*syscall.SockaddrLinklayer); ok && link.Pkttype == syscall.PACKET_OUTGOING {
			continue
		}
		if c, ok := readCheck(buffer[:n]); ok {
			found(c)
		}
	}
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// paqm-follow registers flows by commands on standard input and prints advice, a JSON object in each
// line:
//
//	add SOURCE-PORT DESTINATION PORT SSRC FLOOR CEILING	answered by {"added": FLOW}
//	limits FLOW FLOOR CEILING
//	timing FLOW GOP-US ANSWER-US
//	status FLOW BPS GOP QP
//	remove FLOW
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"paqm.example/client"
)

var printing sync.Mutex

func show(what map[string]any) {
	printing.Lock()
	defer printing.Unlock()
	put(what)
}

// put is called with the lock held.
func put(what map[string]any) {
	text, _ := json.Marshal(what)
	fmt.Println(string(text))
}

func obey(c *client.Client, words []string) error {
	if len(words) == 7 && words[0] == "add" {
		to, err := netip.ParseAddr(words[2])
		if err != nil {
			return err
		}
		n, err := numbers([]string{words[1], words[3], words[4], words[5], words[6]}, 16, 16, 32, 64, 64)
		if err != nil {
			return err
		}
		printing.Lock() // its advice comes after its number, or nobody would know whose it is
		defer printing.Unlock()
		flow, err := c.Add(client.Flow{
			Source:      netip.AddrPortFrom(netip.Addr{}, uint16(n[0])),
			Destination: netip.AddrPortFrom(to, uint16(n[1])),
			SSRC:        uint32(n[2]), FloorBPS: n[3], CeilingBPS: n[4],
		})
		if err == nil {
			put(map[string]any{"added": flow})
		}
		return err
	}
	bits := widths[words[0]]
	if bits == nil || len(bits) != len(words)-1 {
		return fmt.Errorf("%s: expected %s", words[0], known)
	}
	n, err := numbers(words[1:], bits...)
	if err != nil {
		return err
	}
	switch words[0] {
	case "limits":
		err = c.Limits(n[0], n[1], n[2])
	case "timing":
		err = c.Change(n[0], func(f *client.Flow) {
			f.GOP = time.Duration(n[1]) * time.Microsecond
			f.Answer = time.Duration(n[2]) * time.Microsecond
		})
	case "status":
		err = c.Status(n[0], n[1], uint32(n[2]), uint32(n[3]))
	default:
		err = c.Remove(n[0])
	}
	if errors.Is(err, syscall.ENOENT) { // which means files elsewhere
		return fmt.Errorf("there is no flow %d", n[0])
	}
	return err
}

// known are the commands, for people.
const known = "add, limits, timing, status or remove"

// widths are the bits of a command's numbers.
var widths = map[string][]int{
	"limits": {64, 64, 64},
	"timing": {64, 32, 32},
	"status": {64, 64, 32, 32},
	"remove": {64},
}

// numbers reads as many words, each of so many bits: one that is cut would mean another flow.
func numbers(words []string, bits ...int) (found []uint64, err error) {
	for i, word := range words {
		n, err := strconv.ParseUint(word, 10, bits[i])
		if err != nil {
			return nil, err
		}
		found = append(found, n)
	}
	return found, nil
}

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintf(os.Stderr, "paqm-follow: %q: expected commands on standard input: %s\n",
			os.Args[1], known)
		os.Exit(2)
	}
	c, err := client.Open("")
	if err != nil {
		fmt.Fprintln(os.Stderr, "paqm-follow:", err)
		os.Exit(2)
	}
	go func() {
		for {
			a, err := c.Next(context.Background())
			if err != nil {
				return
			}
			router := ""
			if a.Router.IsValid() && a.Routers > 0 {
				router = a.Router.String()
			}
			show(map[string]any{
				"flow": a.Flow, "cause": a.Cause.String(), "rate_bps": a.RateBPS, "error": int(a.Error),
				"router": router, "seq": a.Seq, "policed": a.Policed, "overload": a.Overload,
			})
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if err := obey(c, words); err != nil {
			show(map[string]any{"failed": err.Error()})
		}
	}
	c.Close()
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// What is asked of Janus: its HTTP transport, Admin API and the plugin VideoRoom.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

const answerMax = 1 << 20

type janus struct {
	api, admin, adminSecret string
	secret                  string // of the API, if it has one
	room                    string // a number, or text with string_ids
}

type answer struct {
	Janus    string
	Error    refusal
	Sessions []json.Number
	Handles  []json.Number
	Info     handleInfo
	Plugin   struct {
		Data struct {
			Error string
		}
	} `json:"plugindata"`
}

// refusal is Janus' own answer that something cannot be done.
type refusal struct {
	Code   int
	Reason string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s (%d)", r.Reason, r.Code)
}

// isGone says whether Janus knows no such session or handle any more. Any other failure leaves open who is there.
func isGone(err error) bool {
	var said *refusal
	return errors.As(err, &said) && (said.Code == 458 || said.Code == 459)
}

type handleInfo struct {
	Plugin   string
	Specific struct {
		Type    string
		Room    json.RawMessage // other plugins may call anything so, or as the next
		Bitrate json.RawMessage // of a publisher, as it was set last, by whoever
		Streams []struct {
			Type   string
			Active bool
		}
	} `json:"plugin_specific"`
	WebRTC struct {
		ICE struct {
			Pair string `json:"selected-pair"`
		}
		Media map[string]struct {
			Type  string
			Stats struct {
				Out struct {
					Bytes uint64
				}
			}
		}
	}
}

var web = http.Client{Timeout: 10 * time.Second}

func ask(ctx context.Context, url string, body map[string]any) (*answer, error) {
	body["transaction"] = "paqm"
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	got, err := web.Do(request)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	found, err := parse(io.LimitReader(got.Body, answerMax))
	if err != nil && got.StatusCode != http.StatusOK { // of another path, a proxy: a page, perhaps
		return nil, fmt.Errorf("%s: %s: %w", url, got.Status, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return found, nil
}

func parse(from io.Reader) (*answer, error) {
	found := &answer{}
	if err := json.NewDecoder(from).Decode(found); err != nil {
		return nil, err
	}
	if found.Janus != "success" && found.Janus != "ack" {
		return nil, fmt.Errorf("%s: %w", found.Janus, &found.Error)
	}
	if found.Plugin.Data.Error != "" {
		return nil, fmt.Errorf("VideoRoom: %s", found.Plugin.Data.Error)
	}
	return found, nil
}

func (j *janus) asAdmin(ctx context.Context, path, request string) (*answer, error) {
	return ask(ctx, j.admin+path, map[string]any{"janus": request, "admin_secret": j.adminSecret})
}

type subscriber struct {
	pair    string
	streams int
	bytes   uint64 // of pictures, sent to him so far
	at      time.Time
}

// limit is what a publisher may send, as Janus has it: in bit/s, 0 none.
type limit struct {
	bps uint32
	ok  bool // Janus tells it
	at  time.Time
}

func limitOf(info *handleInfo, at time.Time) limit {
	bps, err := strconv.ParseUint(string(info.Specific.Bitrate), 10, 32)
	return limit{uint32(bps), err == nil, at}
}

// people is who is in the room with a connection that is made, by session and handle.
type people struct {
	viewers    map[string]subscriber
	publishers map[string]limit
	unknown    map[string]error // sessions and handles that Janus gave no answer about
}

// isUnknown says whether a handle may still be there as it was before.
func (p *people) isUnknown(handle string) bool {
	session := handle[:strings.LastIndexByte(handle, '/')]
	return p.unknown[handle] != nil || p.unknown[session] != nil
}

// err is one of the failures, if there were any.
func (p *people) err() error {
	for path, err := range p.unknown {
		return fmt.Errorf("%d sessions and handles are unknown, %s: %w", len(p.unknown), path, err)
	}
	return nil
}

func (j *janus) people(ctx context.Context) (*people, error) {
	sessions, err := j.asAdmin(ctx, "", "list_sessions")
	if err != nil {
		return nil, err
	}
	found := &people{
		viewers: map[string]subscriber{}, publishers: map[string]limit{}, unknown: map[string]error{},
	}
	for _, session := range sessions.Sessions {
		of := "/" + session.String()
		handles, err := j.asAdmin(ctx, of, "list_handles")
		if err != nil {
			found.fail(of, err)
			continue
		}
		for _, handle := range handles.Handles {
			path, asked := of+"/"+handle.String(), time.Now()
			got, err := j.asAdmin(ctx, path, "handle_info")
			if err != nil {
				found.fail(path, err)
				continue
			}
			if !j.isHere(&got.Info) {
				continue
			}
			if got.Info.Specific.Type == "publisher" {
				found.publishers[path] = limitOf(&got.Info, asked)
			} else if got.Info.Specific.Type == "subscriber" {
				found.viewers[path] = subscriber{
					got.Info.WebRTC.ICE.Pair, pictures(&got.Info), sent(&got.Info), time.Now(),
				}
			}
		}
	}
	return found, ctx.Err()
}

func (p *people) fail(path string, err error) {
	if !isGone(err) { // else it has ended meanwhile
		p.unknown[path] = err
	}
}

// isHere says whether a handle is in the room, connected.
func (j *janus) isHere(info *handleInfo) bool {
	room := string(info.Specific.Room)
	if text := ""; json.Unmarshal(info.Specific.Room, &text) == nil {
		room = text
	}
	return info.Plugin == "janus.plugin.videoroom" && room == j.room && info.WebRTC.ICE.Pair != ""
}

// pictures is how many a viewer is sent.
func pictures(info *handleInfo) int {
	count := 0
	for _, one := range info.Specific.Streams {
		if one.Type == "video" && one.Active {
			count++
		}
	}
	return max(count, 1)
}

// sent is how many bytes of pictures a viewer was sent.
func sent(info *handleInfo) uint64 {
	bytes := uint64(0)
	for _, one := range info.WebRTC.Media {
		if one.Type == "video" {
			bytes += one.Stats.Out.Bytes
		}
	}
	return bytes
}

// parsePair reads "192.0.2.1:10000 [host,udp] <-> 192.0.2.7:40000 [prflx,udp]". Where our end is not the
// host's own it is what the viewer sees behind a NAT, while routers inside quote the host: the address is
// left open then (own.go finds it), with the port, which most NATs keep. What a relay sends on is no flow of ours.
func parsePair(text string) (local, remote netip.AddrPort, err error) {
	ends := strings.Split(text, " <-> ")
	if len(ends) != 2 {
		return local, remote, fmt.Errorf("pair %q: expected two ends", text)
	}
	found := [2]netip.AddrPort{}
	for i, end := range ends {
		words := strings.Fields(end)
		if len(words) != 2 || !strings.HasSuffix(words[1], ",udp]") {
			return local, remote, fmt.Errorf("pair %q: expected ADDRESS:PORT [TYPE,udp]", text)
		}
		at := strings.LastIndexByte(words[0], ':')
		if at < 0 {
			return local, remote, fmt.Errorf("pair %q: expected a port", text)
		}
		host, port := strings.Trim(words[0][:at], "[]"), words[0][at+1:]
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if found[i], err = netip.ParseAddrPort(host + ":" + port); err != nil {
			return local, remote, fmt.Errorf("pair %q: %w", text, err)
		}
	}
	switch {
	case strings.Contains(ends[0], "[relay,"):
		return local, remote, fmt.Errorf("pair %q: what goes through a relay is not followed", text)
	case !strings.Contains(ends[0], "[host,"):
		found[0] = netip.AddrPortFrom(netip.Addr{}, found[0].Port())
	}
	return found[0], found[1], nil
}

// configure sets the rate of a publisher, in its own name: the plugin has no such request for others,
// and `edit` of a room holds for those who come later.
func (j *janus) configure(ctx context.Context, path string, bps uint64) error {
	body := map[string]any{"janus": "message", "body": map[string]any{
		"request": "configure", "bitrate": bps,
	}}
	if j.secret != "" {
		body["apisecret"] = j.secret
	}
	_, err := ask(ctx, j.api+path, body)
	return err
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// What is asked of Janus: its HTTP transport, Admin API and the plugin VideoRoom.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

const answerMax = 1 << 20

type janus struct {
	api, admin, adminSecret string
	secret                  string // of the API, if it has one
	room                    int64
}

type answer struct {
	Janus string
	Error struct {
		Reason string
	}
	Sessions []json.Number
	Handles  []json.Number
	Info     handleInfo
	Plugin   struct {
		Data struct {
			Error string
		}
	} `json:"plugindata"`
}

type handleInfo struct {
	Plugin   string
	Specific struct {
		Type    string
		Room    json.Number
		Streams []struct {
			Type   string
			Active bool
		}
	} `json:"plugin_specific"`
	WebRTC struct {
		ICE struct {
			Pair string `json:"selected-pair"`
		}
	}
}

var web = http.Client{Timeout: 10 * time.Second}

func ask(url string, body map[string]any) (*answer, error) {
	body["transaction"] = "paqm"
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	got, err := web.Post(url, "application/json", bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	found, err := parse(io.LimitReader(got.Body, answerMax))
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
		return nil, fmt.Errorf("%s: %s", found.Janus, found.Error.Reason)
	}
	if found.Plugin.Data.Error != "" {
		return nil, fmt.Errorf("VideoRoom: %s", found.Plugin.Data.Error)
	}
	return found, nil
}

func (j *janus) asAdmin(path, request string) (*answer, error) {
	return ask(j.admin+path, map[string]any{"janus": request, "admin_secret": j.adminSecret})
}

type subscriber struct {
	pair    string
	streams int
}

// people finds who is in the room with a connection that is made: viewers and publishers, by session
// and handle.
func (j *janus) people() (found map[string]subscriber, publishers []string, err error) {
	sessions, err := j.asAdmin("", "list_sessions")
	if err != nil {
		return nil, nil, err
	}
	found = map[string]subscriber{}
	for _, session := range sessions.Sessions {
		handles, err := j.asAdmin("/"+session.String(), "list_handles")
		if err != nil {
			continue // it has ended meanwhile
		}
		for _, handle := range handles.Handles {
			path := "/" + session.String() + "/" + handle.String()
			got, err := j.asAdmin(path, "handle_info")
			if err != nil {
				continue
			}
			if !j.isHere(&got.Info) {
				continue
			}
			if got.Info.Specific.Type == "publisher" {
				publishers = append(publishers, path)
			} else if got.Info.Specific.Type == "subscriber" {
				found[path] = subscriber{got.Info.WebRTC.ICE.Pair, pictures(&got.Info)}
			}
		}
	}
	return found, publishers, nil
}

// isHere says whether a handle is in the room, connected.
func (j *janus) isHere(info *handleInfo) bool {
	return info.Plugin == "janus.plugin.videoroom" &&
		info.Specific.Room.String() == fmt.Sprint(j.room) && info.WebRTC.ICE.Pair != ""
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

// parsePair reads "192.0.2.1:10000 [host,udp] <-> 192.0.2.7:40000 [prflx,udp]".
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
	return found[0], found[1], nil
}

// configure sets the rate of a publisher, in its own name: the plugin has no such request for others,
// and `edit` of a room holds for those who come later.
func (j *janus) configure(path string, bps uint64) error {
	body := map[string]any{"janus": "message", "body": map[string]any{
		"request": "configure", "bitrate": bps,
	}}
	if j.secret != "" {
		body["apisecret"] = j.secret
	}
	_, err := ask(j.api+path, body)
	return err
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// A publisher and a viewer of a room of Janus (VideoRoom), by its HTTP API. What Janus tells the
// publisher to send (REMB) and what the viewer gets are printed, a JSON object in each line.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"

	"paqm.example/connectors/media"
)

type object = map[string]any

// handle is a plugin handle of Janus in a session of its own.
type handle struct{ session, url string }

func ask(url string, body object) (object, error) {
	var answer *http.Response
	var err error
	if body == nil {
		answer, err = http.Get(url)
	} else {
		body["transaction"] = "load"
		text, _ := json.Marshal(body)
		answer, err = http.Post(url, "application/json", bytes.NewReader(text))
	}
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	decoder, found := json.NewDecoder(answer.Body), object{}
	decoder.UseNumber()
	if err := decoder.Decode(&found); err != nil {
		return nil, err
	}
	if found["janus"] == "error" {
		return nil, fmt.Errorf("%s: %v", url, found["error"])
	}
	return found, nil
}

func attach(server string) (*handle, error) {
	session, err := ask(server, object{"janus": "create"})
	if err != nil {
		return nil, err
	}
	h := &handle{session: fmt.Sprintf("%s/%v", server, session["data"].(object)["id"])}
	plugin, err := ask(h.session, object{"janus": "attach", "plugin": "janus.plugin.videoroom"})
	if err != nil {
		return nil, err
	}
	h.url = fmt.Sprintf("%s/%v", h.session, plugin["data"].(object)["id"])
	return h, nil
}

// message asks the plugin; the answer is the first event that it has anything in.
func (h *handle) message(body object, sdp *webrtc.SessionDescription) (object, error) {
	request := object{"janus": "message", "body": body}
	if sdp != nil {
		request["jsep"] = sdp
	}
	if _, err := ask(h.url, request); err != nil {
		return nil, err
	}
	for {
		event, err := ask(h.session, nil)
		if err != nil {
			return nil, err
		}
		if event["janus"] == "event" {
			return event, nil
		}
	}
}

func jsep(event object) (webrtc.SessionDescription, error) {
	var found struct{ Jsep webrtc.SessionDescription }
	text, _ := json.Marshal(event)
	err := json.Unmarshal(text, &found)
	return found.Jsep, err
}

func janusPublish(o *options, room int) (any, error) {
	names, _ := filepath.Glob(filepath.Join(o.layers, "*.ivf"))
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no *.ivf there", o.layers)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		return nil, err
	}
	pictures, interval, err := media.ReadIVF(data)
	if err != nil {
		return nil, err
	}
	h, err := attach(o.server)
	if err != nil {
		return nil, err
	}
	joined, err := h.message(object{"request": "join", "ptype": "publisher", "room": room}, nil)
	if err != nil {
		return nil, err
	}
	id := joined["plugindata"].(object)["data"].(object)["id"]
	pc, err := newPeer()
	if err != nil {
		return nil, err
	}
	track, err := webrtc.NewTrackLocalStaticRTP(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeH264, ClockRate: clockRate}, "video", "load")
	if err != nil {
		return nil, err
	}
	transceiver, err := pc.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{
		Direction: webrtc.RTPTransceiverDirectionSendonly,
	})
	if err != nil {
		return nil, err
	}
	go rembs(transceiver.Sender())
	offer, err := pc.CreateOffer(nil)
	if err != nil {
		return nil, err
	}
	gathered := webrtc.GatheringCompletePromise(pc)
	if err := pc.SetLocalDescription(offer); err != nil {
		return nil, err
	}
	<-gathered
	event, err := h.message(object{"request": "publish"}, pc.LocalDescription())
	if err != nil {
		return nil, err
	}
	answer, err := jsep(event)
	if err != nil {
		return nil, err
	}
	if err := pc.SetRemoteDescription(answer); err != nil {
		return nil, err
	}
	packets := rtp.NewPacketizer(mtu, 96, 1, &codecs.H264Payloader{}, rtp.NewFixedSequencer(1), clockRate)
	go func() {
		begin := time.Now()
		for n := 0; ; n++ {
			time.Sleep(time.Until(begin.Add(time.Duration(n) * interval)))
			samples := uint32(interval.Seconds() * clockRate)
			for _, p := range packets.Packetize(pictures[n%len(pictures)], samples) {
				_ = track.WriteRTP(p)
			}
		}
	}()
	return id, nil
}

func rembs(sender *webrtc.RTPSender) {
	for {
		packets, _, err := sender.ReadRTCP()
		if err != nil {
			return
		}
		for _, p := range packets {
			if remb, ok := p.(*rtcp.ReceiverEstimatedMaximumBitrate); ok {
				fmt.Printf("{\"remb\": %.0f}\n", remb.Bitrate)
			}
		}
	}
}

func janusView(o *options, room int, feed any) error {
	h, err := attach(o.server)
	if err != nil {
		return err
	}
	event, err := h.message(object{
		"request": "join", "ptype": "subscriber", "room": room, "streams": []object{{"feed": feed}},
	}, nil)
	if err != nil {
		return err
	}
	offer, err := jsep(event)
	if err != nil {
		return err
	}
	pc, err := newPeer()
	if err != nil {
		return err
	}
	var count atomic.Int64
	pc.OnTrack(func(t *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			if _, _, err := t.ReadRTP(); err != nil {
				return
			}
			count.Add(1)
		}
	})
	if err := pc.SetRemoteDescription(offer); err != nil {
		return err
	}
	answer, err := pc.CreateAnswer(nil)
	if err != nil {
		return err
	}
	gathered := webrtc.GatheringCompletePromise(pc)
	if err := pc.SetLocalDescription(answer); err != nil {
		return err
	}
	<-gathered
	if _, err := h.message(object{"request": "start"}, pc.LocalDescription()); err != nil {
		return err
	}
	for time.Now().Before(o.at(o.until)) {
		time.Sleep(time.Second / 2)
		fmt.Printf("{\"viewed\": %d}\n", count.Load())
	}
	return nil
}

// janus publishes to room 1234 and views it.
func janus(o *options) error {
	const room = 1234
	id, err := janusPublish(o, room)
	if err != nil {
		return err
	}
	time.Sleep(time.Second)
	return janusView(o, room, id)
}

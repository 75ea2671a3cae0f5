// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// A publisher and viewers of a room of Janus (VideoRoom), by its HTTP API. The publisher makes the room
// and has one stream, whose rate Janus tells it by REMB: that, and the layer that it sends then, are
// printed, a JSON object in each line.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"
)

const (
	firstBPS = 300_000 // what a browser begins with, before it is told
	pace     = 1.5     // and how much faster than its rate it sends a large picture
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
	server = "http://" + server + "/janus"
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

// message asks the plugin; the answer comes at once, or is the first event that it has anything in.
func (h *handle) message(body object, sdp *webrtc.SessionDescription) (object, *webrtc.SessionDescription, error) {
	request := object{"janus": "message", "body": body}
	if sdp != nil {
		request["jsep"] = sdp
	}
	found, err := ask(h.url, request)
	for err == nil && found["janus"] != "success" && found["janus"] != "event" {
		found, err = ask(h.session, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	var told struct {
		Jsep   *webrtc.SessionDescription
		Plugin struct{ Data object } `json:"plugindata"`
	}
	text, _ := json.Marshal(found)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&told); err != nil {
		return nil, nil, err
	}
	if why := told.Plugin.Data["error"]; why != nil {
		return nil, nil, fmt.Errorf("%v: %v", body["request"], why)
	}
	return told.Plugin.Data, told.Jsep, nil
}

// stay takes what Janus has to say, as who does not is gone for it after a minute.
func (h *handle) stay() {
	for {
		if _, err := ask(h.session, nil); err != nil {
			return
		}
	}
}

func describe(pc *webrtc.PeerConnection, description webrtc.SessionDescription, err error) error {
	if err != nil {
		return err
	}
	gathered := webrtc.GatheringCompletePromise(pc)
	if err := pc.SetLocalDescription(description); err != nil {
		return err
	}
	<-gathered
	return nil
}

// publishJanus makes the room and publishes one stream.
func publishJanus(o *options, pc *webrtc.PeerConnection, movies []*movie) error {
	h, err := attach(o.server)
	if err != nil {
		return err
	}
	if _, _, err := h.message(object{
		"request": "create", "room": o.janus, "bitrate": o.bitrate, "videocodec": "h264",
	}, nil); err != nil {
		return err
	}
	if _, _, err := h.message(object{"request": "join", "ptype": "publisher", "room": o.janus}, nil); err != nil {
		return err
	}
	track, err := webrtc.NewTrackLocalStaticRTP(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeH264, ClockRate: clockRate}, "video", "load")
	if err != nil {
		return err
	}
	transceiver, err := pc.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{
		Direction: webrtc.RTPTransceiverDirectionSendonly,
	})
	if err != nil {
		return err
	}
	connected := make(chan struct{})
	once := sync.OnceFunc(func() { close(connected) }) // a connection may break, and come back
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			once()
		}
	})
	offer, err := pc.CreateOffer(nil)
	if err := describe(pc, offer, err); err != nil {
		return err
	}
	_, answer, err := h.message(object{"request": "publish"}, pc.LocalDescription())
	if err == nil && answer == nil {
		err = errors.New("publish: no answer of Janus to the offer")
	}
	if err != nil {
		return err
	}
	if err := pc.SetRemoteDescription(*answer); err != nil {
		return err
	}
	go h.stay()
	<-connected
	var bps atomic.Uint64
	bps.Store(firstBPS)
	go o.obey(transceiver.Sender(), &bps)
	return o.playOne(track, movies, &bps)
}

// obey takes what the publisher may send, as Janus tells it.
func (o *options) obey(sender *webrtc.RTPSender, bps *atomic.Uint64) {
	for {
		packets, _, err := sender.ReadRTCP()
		if err != nil {
			return
		}
		for _, p := range packets {
			if remb, ok := p.(*rtcp.ReceiverEstimatedMaximumBitrate); ok {
				bps.Store(uint64(remb.Bitrate))
				fmt.Printf("{\"t\": %.3f, \"remb\": %.0f}\n", time.Since(o.epoch).Seconds(), remb.Bitrate)
			}
		}
	}
}

// fitting is the largest of the layers that a rate allows, or the least.
func fitting(movies []*movie, bps float64) *movie {
	best := movies[0]
	for _, m := range movies {
		if m.bps() <= bps {
			best = m
		}
	}
	return best
}

// playOne sends one stream at its times: of the layers the one that fits, from its next key picture on.
func (o *options) playOne(track *webrtc.TrackLocalStaticRTP, movies []*movie, bps *atomic.Uint64) error {
	packets := rtp.NewPacketizer(mtu, 96, 1, &codecs.H264Payloader{}, rtp.NewFixedSequencer(1), clockRate)
	var now *movie
	var free time.Time
	begin, interval := time.Now(), movies[0].interval
	samples := uint32(interval.Seconds() * clockRate)
	for n := 0; time.Now().Before(o.at(o.until)); n++ {
		time.Sleep(time.Until(begin.Add(time.Duration(n) * interval)))
		next := fitting(movies, float64(bps.Load()))
		if now == nil || next != now && hasKey(next.pictures[n%len(next.pictures)]) {
			now = next
			fmt.Printf("{\"t\": %.3f, \"layer\": %q}\n", time.Since(o.epoch).Seconds(), now.rid)
		}
		for _, p := range packets.Packetize(now.pictures[n%len(now.pictures)], samples) {
			time.Sleep(time.Until(free))
			took := float64(len(p.Payload)) * 8 / (pace * now.bps())
			free = time.Now().Add(time.Duration(took * float64(time.Second)))
			if err := track.WriteRTP(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasKey says whether a picture (H.264, Annex B) can be decoded alone: it begins with a parameter set.
func hasKey(picture []byte) bool {
	const parameters = 7
	start := bytes.Index(picture, []byte{0, 0, 1})
	return start >= 0 && start+3 < len(picture) && picture[start+3]&0x1f == parameters
}

// viewJanus asks for the stream of the room.
func viewJanus(o *options, pc *webrtc.PeerConnection) error {
	h, err := attach(o.server)
	if err != nil {
		return err
	}
	room, _, err := h.message(object{"request": "listparticipants", "room": o.janus}, nil)
	if err != nil {
		return err
	}
	there, _ := room["participants"].([]any)
	if len(there) == 0 {
		return errors.New("nobody is in the room")
	}
	_, offer, err := h.message(object{
		"request": "join", "ptype": "subscriber", "room": o.janus,
		"streams": []object{{"feed": there[0].(object)["id"]}},
	}, nil)
	if err == nil && offer == nil {
		err = errors.New("join: no offer of Janus")
	}
	if err != nil {
		return err
	}
	if err := pc.SetRemoteDescription(*offer); err != nil {
		return err
	}
	answer, err := pc.CreateAnswer(nil)
	if err := describe(pc, answer, err); err != nil {
		return err
	}
	_, _, err = h.message(object{"request": "start"}, pc.LocalDescription())
	go h.stay()
	return err
}

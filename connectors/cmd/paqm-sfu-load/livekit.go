// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

// A participant of a room of LiveKit, by its WebSocket: the server offers what it sends, the
// participant what it publishes.

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pion/webrtc/v4"
	"golang.org/x/net/websocket"
)

const (
	livekitRoom = "load"
	// Of the signals that are used here, all that is later than subscribers' offers (2021) will do.
	livekitProtocol = "9"
	livekitPing     = 5 * time.Second
)

// Names of the layers of LiveKit's publishers, the smallest first.
var livekitLayers = []string{"q", "h", "f"}

// participant has one transport: a publisher's, or a viewer's.
type participant struct {
	pc        *webrtc.PeerConnection
	publishes bool
	socket    *websocket.Conn
	ended     chan error

	sending sync.Mutex
	waiting []webrtc.ICECandidateInit // for the description of the other side
}

// joinLiveKit enters the room and answers the server until either has gone.
func joinLiveKit(o *options, pc *webrtc.PeerConnection, identity string, publishes bool) (*participant, error) {
	key, secret, ok := strings.Cut(o.livekit, ":")
	if !ok {
		return nil, fmt.Errorf("--livekit %s: expected KEY:SECRET", o.livekit)
	}
	pass, err := token(key, secret, livekitRoom, identity, publishes, time.Now())
	if err != nil {
		return nil, err
	}
	words := url.Values{"access_token": {pass}, "protocol": {livekitProtocol}, "auto_subscribe": {"1"}, "sdk": {"go"}}
	socket, err := websocket.Dial("ws://"+o.server+"/rtc?"+words.Encode(), "", "http://"+o.server)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", identity, err)
	}
	p := &participant{pc: pc, publishes: publishes, socket: socket, ended: make(chan error, 1)}
	go func() { p.ended <- p.listen() }()
	go func() {
		for range time.Tick(livekitPing) {
			if p.send(putNumber(nil, sendPing, uint64(time.Now().UnixMilli()))) != nil {
				return
			}
		}
	}()
	return p, nil
}

func (p *participant) send(message []byte) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	return websocket.Message.Send(p.socket, message)
}

// leave says so: the server would wait for one that has only fallen silent.
func (p *participant) leave() error {
	return p.send(putBytes(nil, sendLeave, nil))
}

func (p *participant) listen() error {
	for {
		var message []byte
		if err := websocket.Message.Receive(p.socket, &message); err != nil {
			return err
		}
		found, err := parts(message)
		if err != nil {
			return err
		}
		for _, one := range found {
			if err := p.hear(one); err != nil {
				return err
			}
		}
	}
}

func (p *participant) hear(one part) error {
	switch one.number {
	case gotOffer:
		if p.publishes {
			return nil // it is sent nothing
		}
		return p.answer(one.bytes)
	case gotAnswer:
		return p.describe(webrtc.SDPTypeAnswer, one.bytes)
	case gotTrickle:
		return p.trickle(one.bytes)
	case gotLeave:
		return fmt.Errorf("LiveKit asks to leave: %x", one.bytes)
	}
	return nil
}

// describe takes the other side's description.
func (p *participant) describe(kind webrtc.SDPType, message []byte) error {
	found, err := parts(message)
	if err != nil {
		return err
	}
	for _, one := range found {
		if one.number == sdpText {
			if err := p.pc.SetRemoteDescription(webrtc.SessionDescription{
				Type: kind, SDP: string(one.bytes),
			}); err != nil {
				return err
			}
		}
	}
	for _, one := range p.waiting {
		if err := p.pc.AddICECandidate(one); err != nil {
			return err
		}
	}
	p.waiting = nil
	return nil
}

func (p *participant) trickle(message []byte) error {
	found, err := parts(message)
	if err != nil {
		return err
	}
	candidate, viewers := webrtc.ICECandidateInit{}, false
	for _, one := range found {
		switch one.number {
		case trickleCandidate:
			if err := json.Unmarshal(one.bytes, &candidate); err != nil {
				return fmt.Errorf("candidate %s: %w", one.bytes, err)
			}
		case trickleTarget:
			viewers = one.value == 1
		}
	}
	if viewers == p.publishes {
		return nil // of the transport that is not used
	}
	if p.pc.RemoteDescription() == nil {
		p.waiting = append(p.waiting, candidate)
		return nil
	}
	return p.pc.AddICECandidate(candidate)
}

// tell sends this side's description, with all its candidates.
func (p *participant) tell(as int, kind string, local webrtc.SessionDescription) error {
	gathered := webrtc.GatheringCompletePromise(p.pc)
	if err := p.pc.SetLocalDescription(local); err != nil {
		return err
	}
	<-gathered
	body := putBytes(putBytes(nil, sdpType, []byte(kind)), sdpText, []byte(p.pc.LocalDescription().SDP))
	return p.send(putBytes(nil, as, body))
}

func (p *participant) answer(message []byte) error {
	if err := p.describe(webrtc.SDPTypeOffer, message); err != nil {
		return err
	}
	answer, err := p.pc.CreateAnswer(nil)
	if err != nil {
		return err
	}
	return p.tell(sendAnswer, "answer", answer)
}

// offer publishes the track with these layers.
func (p *participant) offer(id string, layers []*movie) error {
	track := putBytes(putBytes(nil, trackID, []byte(id)), trackName, []byte("video"))
	track = putNumber(putNumber(track, trackType, 1), trackSource, 1)
	for i, one := range layers {
		layer := putNumber(putNumber(nil, layerQuality, uint64(i)), layerBitrate, uint64(one.bps()))
		layer = putNumber(putNumber(layer, layerWidth, uint64(one.width)), layerHeight, uint64(one.height))
		track = putBytes(track, trackLayers, layer)
		if i == len(layers)-1 {
			track = putNumber(putNumber(track, trackWidth, uint64(one.width)), trackHeight, uint64(one.height))
		}
	}
	if err := p.send(putBytes(nil, sendTrack, track)); err != nil {
		return err
	}
	offer, err := p.pc.CreateOffer(nil)
	if err != nil {
		return err
	}
	return p.tell(sendOffer, "offer", offer)
}

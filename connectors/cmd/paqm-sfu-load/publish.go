// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"

	"paqm.example/connectors/media"
)

// movie is a layer: its pictures, and how long each stands.
type movie struct {
	rid      string
	pictures [][]byte
	interval time.Duration
	track    *webrtc.TrackLocalStaticRTP
	packets  rtp.Packetizer

	width, height int
}

// bps is what it needs in the mean.
func (m *movie) bps() float64 {
	bytes := 0
	for _, picture := range m.pictures {
		bytes += len(picture)
	}
	return float64(bytes) * 8 / (float64(len(m.pictures)) * m.interval.Seconds())
}

// chosen are the layers' files: all, or those that --pick names.
func chosen(o *options) ([]string, error) {
	if o.pick == "" {
		names, err := filepath.Glob(filepath.Join(o.layers, "*.ivf"))
		if err != nil || len(names) == 0 {
			return nil, fmt.Errorf("%s: no *.ivf there", o.layers)
		}
		sort.Strings(names)
		return names, nil
	}
	var names []string
	for _, name := range strings.Split(o.pick, ",") {
		names = append(names, filepath.Join(o.layers, name+".ivf"))
	}
	return names, nil
}

// read loads the layers, the smallest first.
func read(names []string) ([]*movie, error) {
	var movies []*movie
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		pictures, interval, err := media.ReadIVF(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		movies = append(movies, &movie{
			rid: strings.TrimSuffix(filepath.Base(name), ".ivf"), pictures: pictures, interval: interval,
			width:  int(binary.LittleEndian.Uint16(data[12:])),
			height: int(binary.LittleEndian.Uint16(data[14:])),
		})
	}
	return movies, nil
}

func publish(o *options) error {
	names, err := chosen(o)
	if err != nil {
		return err
	}
	if o.livekit != "" && len(names) != len(livekitLayers) {
		return errors.New("LiveKit takes three layers: name them, --pick l1,l3,l5")
	}
	movies, err := read(names)
	if err != nil {
		return err
	}
	pc, err := newPeer()
	if err != nil {
		return err
	}
	defer pc.Close()
	if o.janus != 0 {
		time.Sleep(time.Until(o.at(o.from)))
		return publishJanus(o, pc, movies)
	}
	var sender *webrtc.RTPSender
	for i, m := range movies {
		if o.livekit != "" {
			m.rid = livekitLayers[i]
		}
		m.track, err = webrtc.NewTrackLocalStaticRTP(
			webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeH264, ClockRate: clockRate},
			"video", "load", webrtc.WithRTPStreamID(m.rid))
		if err != nil {
			return err
		}
		m.packets = rtp.NewPacketizer(mtu, 96, uint32(i+1), &codecs.H264Payloader{},
			rtp.NewFixedSequencer(1), clockRate)
		if sender == nil {
			transceiver, err := pc.AddTransceiverFromTrack(m.track, webrtc.RTPTransceiverInit{
				Direction: webrtc.RTPTransceiverDirectionSendonly,
			})
			if err != nil {
				return err
			}
			sender = transceiver.Sender()
		} else if err := sender.AddEncoding(m.track); err != nil {
			return err
		}
	}
	connected := make(chan struct{})
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			close(connected)
		}
	})
	time.Sleep(time.Until(o.at(o.from)))
	ended := make(<-chan error)
	if o.livekit == "" {
		if err := join(pc, "http://"+o.server+"/whip"); err != nil {
			return err
		}
	} else {
		p, err := joinLiveKit(o, pc, "publisher", true)
		if err != nil {
			return err
		}
		if err := p.offer(movies[0].track.ID(), movies); err != nil {
			return err
		}
		ended = p.ended
		defer p.leave()
	}
	select {
	case <-connected:
	case err := <-ended:
		return err
	}
	return play(o, pc, sender, movies, ended)
}

// play sends the pictures at their times, round and round.
func play(o *options, pc *webrtc.PeerConnection, sender *webrtc.RTPSender, movies []*movie,
	ended <-chan error,
) error {
	ids := map[string]uint8{}
	for _, extension := range sender.GetParameters().HeaderExtensions {
		ids[extension.URI] = uint8(extension.ID)
	}
	mid := pc.GetTransceivers()[0].Mid()
	begin := time.Now()
	for n := 0; time.Now().Before(o.at(o.until)); n++ {
		select {
		case <-time.After(time.Until(begin.Add(time.Duration(n) * movies[0].interval))):
		case err := <-ended:
			return err
		}
		for _, m := range movies {
			samples := uint32(m.interval.Seconds() * clockRate)
			for _, p := range m.packets.Packetize(m.pictures[n%len(m.pictures)], samples) {
				if err := p.Header.SetExtension(ids[sdp.SDESMidURI], []byte(mid)); err != nil {
					return err
				}
				if err := p.Header.SetExtension(ids[sdp.SDESRTPStreamIDURI], []byte(m.rid)); err != nil {
					return err
				}
				if err := m.track.WriteRTP(p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// paqm-sfu-load is the load of the lab for a conference server: a publisher of layers that were
// encoded before, and many viewers that count what they could have shown.
//
//	paqm-sfu-load publish --server 10.0.0.1:8080 --layers DIR --epoch NS --until S
//	paqm-sfu-load view --server 10.0.0.1:8080 --count 50 --from S --spread S --until S --epoch NS
//
//	paqm-sfu-load publish --livekit KEY:SECRET --pick l1,l3,l5 ... (so `view`, without --pick)
//	paqm-sfu-load publish --janus 1234 --bitrate 2000000 ... (so `view`, without --bitrate)
//
// Times are in seconds after the epoch. `view` prints a JSON object at its end. At Janus the publisher has
// one stream, of the layer that Janus allows.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/webrtc/v4"
)

const (
	clockRate = 90000
	mtu       = 1200
)

type options struct {
	server, layers string
	livekit, pick  string
	name           string // viewers', before their numbers
	tell           bool
	janus, bitrate uint64
	epoch          time.Time
	from, until    float64
	spread         float64
	count          int
}

func (o *options) at(seconds float64) time.Time {
	return o.epoch.Add(time.Duration(seconds * float64(time.Second)))
}

// newPeer makes a peer connection that knows H.264, NACK and transport-wide feedback.
func newPeer() (*webrtc.PeerConnection, error) {
	media := &webrtc.MediaEngine{}
	if err := media.RegisterCodec(webrtc.RTPCodecParameters{
		RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: webrtc.MimeTypeH264, ClockRate: clockRate,
			SDPFmtpLine:  "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
			RTCPFeedback: []webrtc.RTCPFeedback{{Type: "nack"}, {Type: "nack", Parameter: "pli"}},
		},
		PayloadType: 96,
	}, webrtc.RTPCodecTypeVideo); err != nil {
		return nil, err
	}
	registry := &interceptor.Registry{}
	if err := webrtc.RegisterDefaultInterceptors(media, registry); err != nil {
		return nil, err
	}
	settings := webrtc.SettingEngine{}
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	return webrtc.NewAPI(webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(registry),
		webrtc.WithSettingEngine(settings)).NewPeerConnection(webrtc.Configuration{})
}

// join offers a session to the server.
func join(pc *webrtc.PeerConnection, url string) error {
	offer, err := pc.CreateOffer(nil)
	if err != nil {
		return err
	}
	gathered := webrtc.GatheringCompletePromise(pc)
	if err := pc.SetLocalDescription(offer); err != nil {
		return err
	}
	<-gathered
	answer, err := http.Post(url, "application/sdp", strings.NewReader(pc.LocalDescription().SDP))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s: %s: %s", url, answer.Status, text)
	}
	return pc.SetRemoteDescription(webrtc.SessionDescription{
		Type: webrtc.SDPTypeAnswer, SDP: string(text),
	})
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: paqm-sfu-load publish|view OPTIONS")
	}
	o, words := options{}, flag.NewFlagSet(args[1], flag.ExitOnError)
	words.StringVar(&o.server, "server", "127.0.0.1:8080", "the server's HTTP")
	words.StringVar(&o.layers, "layers", "", "directory of NAME.ivf, H.264")
	epoch := words.Int64("epoch", time.Now().UnixNano(), "second 0, ns since 1970")
	words.StringVar(&o.livekit, "livekit", "", "the server is LiveKit: KEY:SECRET of its API")
	words.StringVar(&o.pick, "pick", "", "layers to publish, the smallest first: NAME,...")
	words.StringVar(&o.name, "name", "viewer", "of viewers at LiveKit, before their numbers")
	words.Uint64Var(&o.janus, "janus", 0, "the server is Janus: number of the room")
	words.Uint64Var(&o.bitrate, "bitrate", 2_000_000, "of the room that publish makes at Janus")
	words.BoolVar(&o.tell, "tell", false, "print what each viewer got, every second")
	words.Float64Var(&o.from, "from", 0, "when to begin")
	words.Float64Var(&o.until, "until", 10, "when to end")
	words.Float64Var(&o.spread, "spread", 0, "viewers join within so many seconds")
	words.IntVar(&o.count, "count", 1, "viewers")
	if err := words.Parse(args[2:]); err != nil {
		return err
	}
	o.epoch = time.Unix(0, *epoch)
	switch args[1] {
	case "publish":
		return publish(&o)
	case "view":
		return view(&o)
	}
	return fmt.Errorf("%s: expected publish or view", args[1])
}

func main() {
	log.SetFlags(0)
	if err := run(os.Args); err != nil {
		log.Fatalln("paqm-sfu-load:", err)
	}
}

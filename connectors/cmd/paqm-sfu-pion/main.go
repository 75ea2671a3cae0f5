// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// paqm-sfu-pion forwards one publisher's simulcast layers to any number of viewers, to each the
// layer that the routers on the way to it allow. Without advice it goes by pion's own estimator.
//
//	paqm-sfu-pion --listen 10.0.0.1:8080 [--port 7000] [--estimator paqm|gcc] [--log FILE]
//
// Offers come by HTTP, as in WHIP and WHEP (RFC 9725): POST /whip from the publisher, POST /whep from
// a viewer, SDP in body and answer. DELETE of the Location ends a session.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/webrtc/v4"

	"paqm.example/client"
	paqm "paqm.example/connectors/pion"
	"paqm.example/connectors/share"
)

const (
	initialBPS = 300_000 // where pion's own estimate begins, its own default for browsers
	tick       = 50 * time.Millisecond
	sdpMax     = 1 << 16
)

type server struct {
	mux       ice.UDPMux
	follower  *paqm.Follower // nil: pion's own estimator
	gate      *share.Gate
	ceiling   uint64
	room      *room
	events    io.Writer
	mu        sync.Mutex
	sessions  map[int]*webrtc.PeerConnection
	last      int
	estimator chan cc.BandwidthEstimator // of the peer connection that is being made
}

// api makes peer connections of one kind: those that send have an estimator.
func (s *server) api(sends bool) (*webrtc.API, error) {
	media := &webrtc.MediaEngine{}
	feedback := []webrtc.RTCPFeedback{{Type: "nack"}, {Type: "nack", Parameter: "pli"}}
	if err := media.RegisterCodec(webrtc.RTPCodecParameters{
		RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: webrtc.MimeTypeH264, ClockRate: clockRate, RTCPFeedback: feedback,
			SDPFmtpLine: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
		},
		PayloadType: 96,
	}, webrtc.RTPCodecTypeVideo); err != nil {
		return nil, err
	}
	registry := &interceptor.Registry{}
	if sends {
		factory := cc.BandwidthEstimatorFactory(func() (cc.BandwidthEstimator, error) {
			return gcc.NewSendSideBWE(gcc.SendSideBWEInitialBitrate(initialBPS))
		})
		if s.follower != nil {
			factory = s.follower.Factory(initialBPS)
		}
		control, err := cc.NewInterceptor(factory)
		if err != nil {
			return nil, err
		}
		control.OnNewPeerConnection(func(_ string, e cc.BandwidthEstimator) { s.estimator <- e })
		registry.Add(control)
		if err := webrtc.ConfigureTWCCHeaderExtensionSender(media, registry); err != nil {
			return nil, err
		}
	}
	if err := webrtc.RegisterDefaultInterceptors(media, registry); err != nil {
		return nil, err
	}
	settings := webrtc.SettingEngine{}
	settings.SetICEUDPMux(s.mux)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6})
	return webrtc.NewAPI(webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(registry),
		webrtc.WithSettingEngine(settings)), nil
}

// accept makes a session of an offer: its number and the answer.
func (s *server) accept(offer string, publish bool) (int, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	api, err := s.api(!publish)
	if err != nil {
		return 0, "", err
	}
	pc, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return 0, "", err
	}
	s.last++
	number := s.last
	if publish {
		pc.OnTrack(func(t *webrtc.TrackRemote, _ *webrtc.RTPReceiver) { s.room.receive(pc, t) })
		pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
			if state == webrtc.PeerConnectionStateFailed || state == webrtc.PeerConnectionStateClosed {
				go s.end(number)
			}
		})
	} else if err := s.view(number, pc, <-s.estimator); err != nil {
		pc.Close()
		return 0, "", err
	}
	answer, err := negotiate(pc, offer)
	if err != nil {
		pc.Close()
		return 0, "", err
	}
	s.sessions[number] = pc
	return number, answer, nil
}

func negotiate(pc *webrtc.PeerConnection, offer string) (string, error) {
	if err := pc.SetRemoteDescription(webrtc.SessionDescription{
		Type: webrtc.SDPTypeOffer, SDP: offer,
	}); err != nil {
		return "", err
	}
	gathered := webrtc.GatheringCompletePromise(pc)
	answer, err := pc.CreateAnswer(nil)
	if err != nil {
		return "", err
	}
	if err := pc.SetLocalDescription(answer); err != nil {
		return "", err
	}
	<-gathered
	return pc.LocalDescription().SDP, nil
}

// view gives a viewer its track and, once connected, its share of what routers allow.
func (s *server) view(number int, pc *webrtc.PeerConnection, e cc.BandwidthEstimator) error {
	track, err := webrtc.NewTrackLocalStaticRTP(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeH264, ClockRate: clockRate}, "video", "sfu")
	if err != nil {
		return err
	}
	sender, err := pc.AddTrack(track)
	if err != nil {
		return err
	}
	v := &viewer{number: number, out: track, estimator: e, server: s}
	go v.feedback(sender)
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			if follows, ok := e.(*paqm.Estimator); ok {
				follows.FollowPeer(pc, 0, s.ceiling)
			}
			s.room.add(v)
		case webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
			s.room.remove(v)
			go s.end(number)
		}
	})
	return nil
}

func (s *server) end(number int) bool {
	s.mu.Lock()
	pc := s.sessions[number]
	delete(s.sessions, number)
	s.mu.Unlock()
	if pc == nil {
		return false
	}
	_ = pc.Close()
	return true
}

// event writes a line of JSON to the log, if there is one. The room's lock is held.
func (s *server) event(what map[string]any) {
	if s.events == nil {
		return
	}
	what["t_ns"] = time.Now().UnixNano()
	text, err := json.Marshal(what)
	if err == nil {
		_, _ = s.events.Write(append(text, '\n'))
	}
}

func (s *server) post(publish bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		offer, err := io.ReadAll(io.LimitReader(r.Body, sdpMax))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		number, answer, err := s.accept(string(offer), publish)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/sdp")
		w.Header().Set("Location", fmt.Sprintf("/session/%d", number))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, answer)
	}
}

func (s *server) del(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/session/"))
	if err != nil || !s.end(number) {
		http.NotFound(w, r)
	}
}

// listenMedia opens the socket of media, at the address that the HTTP server listens on, which may be a name.
func listenMedia(listen string, port int) (*net.UDPConn, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	address, err := net.ResolveUDPAddr("udp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return net.ListenUDP("udp", address)
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:8080", "address of the HTTP server, and of media")
	port := flag.Int("port", 7000, "UDP port of all media")
	estimator := flag.String("estimator", "paqm", "who picks layers: paqm (advice, pion's own without) or gcc (pion's own)")
	socket := flag.String("paqmd", "", "paqmd's socket")
	ceiling := flag.Uint64("ceiling", 100_000_000, "no viewer is sent more, bit/s")
	file := flag.String("log", "", "JSON lines: which viewer is sent which layer, and why")
	flag.Parse()
	if flag.NArg() != 0 {
		return fmt.Errorf("%q: expected options only", flag.Arg(0))
	}
	if *ceiling == 0 || *ceiling > client.RateMax {
		return fmt.Errorf("--ceiling %d: expected 1 to %d", *ceiling, uint64(client.RateMax))
	}
	if *port < 1 || *port > 65535 {
		return fmt.Errorf("--port %d: expected 1 to 65535", *port)
	}
	conn, err := listenMedia(*listen, *port)
	if err != nil {
		return err
	}
	s := &server{
		mux: webrtc.NewICEUDPMux(nil, conn), gate: share.NewGate(), ceiling: *ceiling,
		sessions: map[int]*webrtc.PeerConnection{}, estimator: make(chan cc.BandwidthEstimator, 1),
	}
	s.room = newRoom(s)
	switch *estimator {
	case "paqm":
		if s.follower, err = paqm.NewFollower(*socket); err != nil {
			return err
		}
	case "gcc":
	default:
		return fmt.Errorf("--estimator %s: expected paqm or gcc", *estimator)
	}
	if *file != "" {
		out, err := os.Create(*file)
		if err != nil {
			return err
		}
		defer out.Close()
		s.events = out
	}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /whip", s.post(true))
	routes.HandleFunc("POST /whep", s.post(false))
	routes.HandleFunc("DELETE /session/", s.del)
	web := &http.Server{Addr: *listen, Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-stop
		_ = web.Close()
	}()
	go s.room.run()
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatalln("paqm-sfu-pion:", err)
	}
}

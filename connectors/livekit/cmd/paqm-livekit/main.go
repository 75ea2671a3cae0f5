// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

// paqm-livekit is LiveKit's server, unchanged, with one goroutine more, by which its viewers follow
// P-AQM routers. It stands where livekit-server stands and takes the same configuration:
//
//	paqm-livekit --config livekit.yaml [--paqmd SOCKET|none] [--paqm-ceiling 100000000]
//	             [--paqm-start 300000] [--paqm-log FILE]
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/livekit/livekit-server/pkg/config"
	"github.com/livekit/livekit-server/pkg/routing"
	"github.com/livekit/livekit-server/pkg/service"
	"github.com/livekit/livekit-server/pkg/telemetry/prometheus"
	"github.com/livekit/livekit-server/version"
	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	"github.com/twitchtv/twirp"
	"github.com/urfave/cli/v3"
	"gopkg.in/yaml.v3"

	paqm "paqm.example/livekit"
)

// LiveKit's own options, by its names; config.GenerateCLIFlags adds one for each setting.
var theirs = []cli.Flag{
	&cli.StringSliceFlag{Name: "bind", Usage: "address to listen on, any number of them"},
	&cli.StringFlag{Name: "config", Usage: "LiveKit's configuration file"},
	&cli.StringFlag{Name: "config-body", Usage: "the configuration itself", Sources: cli.EnvVars("LIVEKIT_CONFIG")},
	&cli.StringFlag{Name: "key-file", Usage: "file with API keys and secrets"},
	&cli.StringFlag{Name: "keys", Usage: "API keys (key: secret)", Sources: cli.EnvVars("LIVEKIT_KEYS")},
	&cli.StringFlag{Name: "region", Sources: cli.EnvVars("LIVEKIT_REGION")},
	&cli.StringFlag{Name: "node-ip", Usage: "address that clients are told", Sources: cli.EnvVars("NODE_IP")},
	&cli.StringFlag{Name: "udp-port", Usage: "UDP port(s) of media", Sources: cli.EnvVars("UDP_PORT")},
	&cli.StringFlag{Name: "redis-host", Sources: cli.EnvVars("REDIS_HOST")},
	&cli.StringFlag{Name: "redis-password", Sources: cli.EnvVars("REDIS_PASSWORD")},
	&cli.StringFlag{Name: "turn-cert", Sources: cli.EnvVars("LIVEKIT_TURN_CERT")},
	&cli.StringFlag{Name: "turn-key", Sources: cli.EnvVars("LIVEKIT_TURN_KEY")},
	&cli.BoolFlag{Name: "dev", Usage: "development mode: insecure"},
}

var ours = []cli.Flag{
	&cli.StringFlag{Name: "paqmd", Usage: "paqmd's socket; none: do not follow"},
	&cli.UintFlag{Name: "paqm-ceiling", Value: 100_000_000,
		Usage: "most that advice counts, bit/s; without it LiveKit decides"},
	&cli.UintFlag{Name: "paqm-start", Value: 300_000,
		Usage: "what a new viewer is sent until a router has spoken, for 3 s at most, bit/s; 0: LiveKit's choice"},
	&cli.StringFlag{Name: "paqm-log", Usage: "JSON lines: which capacity was set, and why"},
}

func configure(c *cli.Command) (*config.Config, error) {
	text := c.String("config-body")
	if text == "" && c.String("config") != "" {
		read, err := os.ReadFile(c.String("config"))
		if err != nil {
			return nil, err
		}
		text = string(read)
	}
	found, err := config.NewConfig(text, true, c, theirs)
	if err != nil {
		return nil, err
	}
	config.InitLoggerFromConfig(&found.Logging)
	return found, found.ValidateKeys()
}

// secret is any key of the API, to ask which rooms there are.
func secret(c *config.Config) (key, value string, err error) {
	keys := c.Keys
	if c.KeyFile != "" {
		text, err := os.ReadFile(c.KeyFile)
		if err != nil {
			return "", "", err
		}
		keys = map[string]string{}
		if err := yaml.Unmarshal(text, &keys); err != nil {
			return "", "", fmt.Errorf("%s: %w", c.KeyFile, err)
		}
	}
	for key, value := range keys {
		return key, value, nil
	}
	return "", "", errors.New("there is no API key in the configuration, so rooms cannot be listed")
}

// rooms lists them by LiveKit's own API: the server keeps its table to itself.
func rooms(c *config.Config) (func(context.Context) ([]string, error), error) {
	key, value, err := secret(c)
	if err != nil {
		return nil, err
	}
	host := "127.0.0.1"
	if len(c.BindAddresses) > 0 {
		host = c.BindAddresses[0]
		if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
			host = "127.0.0.1"
		}
	}
	api := livekit.NewRoomServiceProtobufClient(
		"http://"+net.JoinHostPort(host, strconv.Itoa(int(c.Port))), &http.Client{Timeout: 10 * time.Second})
	return func(ctx context.Context) ([]string, error) {
		token, err := auth.NewAccessToken(key, value).SetValidFor(time.Minute).
			SetVideoGrant(&auth.VideoGrant{RoomList: true}).ToJWT()
		if err != nil {
			return nil, err
		}
		ctx, err = twirp.WithHTTPRequestHeaders(ctx, http.Header{"Authorization": {"Bearer " + token}})
		if err != nil {
			return nil, err
		}
		list, err := api.ListRooms(ctx, &livekit.ListRoomsRequest{})
		if err != nil {
			return nil, err
		}
		var names []string
		for _, room := range list.GetRooms() {
			names = append(names, room.GetName())
		}
		return names, nil
	}, nil
}

// follow begins to, unless it is not wanted.
func follow(ctx context.Context, c *cli.Command, config *config.Config, server *service.LivekitServer) error {
	if c.String("paqmd") == "none" {
		return nil
	}
	if !config.RTC.CongestionControl.Enabled {
		return errors.New("rtc.congestion_control.enabled is false: LiveKit sends every viewer all it has, " +
			"whatever is advised; set it to true, or give --paqmd none")
	}
	names, err := rooms(config)
	if err != nil {
		return err
	}
	options := paqm.Options{
		Socket: c.String("paqmd"), Ceiling: uint64(c.Uint("paqm-ceiling")), Start: uint64(c.Uint("paqm-start")),
		Names: names, Room: server.RoomManager().GetRoom,
	}
	if name := c.String("paqm-log"); name != "" {
		file, err := os.Create(name)
		if err != nil {
			return err
		}
		options.Events = file // closed with the program
	}
	follower, err := paqm.NewFollower(options)
	if err != nil {
		return err
	}
	go func() {
		for !server.IsRunning() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second / 10):
			}
		}
		follower.Run(ctx)
	}()
	return nil
}

func run(ctx context.Context, c *cli.Command) error {
	if c.Args().Present() {
		return fmt.Errorf("%q: expected options only", c.Args().First())
	}
	config, err := configure(c)
	if err != nil {
		return err
	}
	node, err := routing.NewLocalNode(config)
	if err != nil {
		return err
	}
	if err := prometheus.Init(string(node.NodeID()), node.NodeType()); err != nil {
		return err
	}
	server, err := service.InitializeServer(config, node)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := follow(ctx, c, config, server); err != nil {
		return err
	}
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-stop
		go server.Stop(false) // when all have left
		<-stop
		server.Stop(true)
	}()
	return server.Start()
}

func main() {
	generated, err := config.GenerateCLIFlags(theirs, true)
	if err != nil {
		fail(err)
	}
	command := &cli.Command{
		Name: "paqm-livekit", Usage: "LiveKit's server, whose viewers follow P-AQM routers",
		Version: version.Version, Flags: append(append(theirs, ours...), generated...), Action: run,
		HideHelpCommand: true,
	}
	if err := command.Run(context.Background(), os.Args); err != nil {
		fail(err)
	}
}

// fail does without package log, which LiveKit turns into entries of its own log.
func fail(err error) {
	fmt.Fprintln(os.Stderr, "paqm-livekit:", err)
	os.Exit(1)
}

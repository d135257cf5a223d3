package main

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/resolver/dns"  // registers dns-poll and srv
	_ "github.com/leastconn/grpc-leastconn/resolver/file" // registers nodes
)

// service is what live opens sessions over: the user's, or a fleet in this process.
type service struct {
	conn   *grpc.ClientConn
	most   int                     // sessions to hold, 0: all
	change func(opened int) string // what happens to the servers after so many sessions, "" for nothing
	close  func()
}

// openService dials the target; without one it starts a fleet.
func openService(target string, opts ...grpc.DialOption) (*service, error) {
	if target == "" {
		return openFleet(opts...)
	}
	conn, err := grpc.NewClient(target, append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{}.ServiceConfig()))...)
	if err != nil {
		return nil, err
	}
	return &service{conn: conn, change: func(int) string { return "" }, close: func() { conn.Close() }}, nil
}

// A fleet's third server joins after so many sessions; and so many are held, so that it can go on for ever.
const (
	fleetJoins = 12
	fleetHolds = 30
)

// openFleet starts three servers, of which the channel is told of two at first.
func openFleet(opts ...grpc.DialOption) (*service, error) {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b", "c")
	if err != nil {
		return nil, err
	}
	channel, err := leastconntest.Dial(leastconntest.ChannelConfig{
		Target: "fleet", Endpoints: leastconntest.Endpoints(nodes[:2]...), DialOptions: opts,
	})
	if err != nil {
		leastconntest.CloseNodes(nodes...)
		return nil, err
	}
	return &service{
		conn: channel.Conn(),
		most: fleetHolds,
		change: func(opened int) string {
			if opened != fleetJoins {
				return ""
			}
			if err := channel.UpdateNodes(nodes...); err != nil {
				return "c cannot join: " + err.Error()
			}
			return "c joins a and b"
		},
		close: func() {
			channel.Close()
			leastconntest.CloseNodes(nodes...)
		},
	}, nil
}

package main

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/resolver/dns"  // registers dns-poll and srv
	_ "github.com/leastconn/grpc-leastconn/resolver/file" // registers nodes
)

// service is what sessions open over: the user's, or a fleet in this process.
type service struct {
	conn   *grpc.ClientConn
	most   int                    // sessions to hold, 0: all
	change func(begun int) string // what happens to the servers after so many sessions, "" for nothing
	close  func()
}

// openService dials the target; without one it starts a fleet.
func openService(target string) (*service, error) {
	if target == "" {
		return openFleet()
	}
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{}.ServiceConfig()))
	if err != nil {
		return nil, fmt.Errorf("-target is %q: %w", target, err)
	}
	return &service{conn: conn, change: func(int) string { return "" }, close: func() { conn.Close() }}, nil
}

// What happens to a fleet, by the number of sessions that have begun. It holds so many that it can go on for ever.
const (
	fleetHolds  = 30
	fleetJoins  = 12 // c joins a and b
	fleetLeaves = 40 // b leaves the list, each fleetCycle, and its sessions live on
	fleetCycle  = 60 // it returns
)

// openFleet starts three servers, of which the channel is told of two at first.
func openFleet() (*service, error) {
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b", "c")
	if err != nil {
		return nil, err
	}
	channel, err := leastconntest.Dial(leastconntest.ChannelConfig{
		Target: "fleet", Endpoints: leastconntest.Endpoints(nodes[:2]...),
	})
	if err != nil {
		leastconntest.CloseNodes(nodes...)
		return nil, err
	}
	list := func(what string, nodes ...*leastconntest.Node) string {
		if err := channel.UpdateNodes(nodes...); err != nil {
			return what + ", refused: " + err.Error()
		}
		return what
	}
	return &service{
		conn: channel.Conn(),
		most: fleetHolds,
		change: func(begun int) string {
			switch {
			case begun == fleetJoins:
				return list("c joins a and b", nodes...)
			case begun%fleetCycle == fleetLeaves:
				return list("b leaves the list", nodes[0], nodes[2])
			case begun > 0 && begun%fleetCycle == 0:
				return list("b returns", nodes...)
			}
			return ""
		},
		close: func() {
			channel.Close()
			leastconntest.CloseNodes(nodes...)
		},
	}, nil
}

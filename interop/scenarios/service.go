package main

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer/orcaload" // lets it ask for reports
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/serverload"
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
func openService(o watchOptions) (*service, error) {
	var cfg leastconnbalancer.Config
	if o.asked > 0 {
		cfg.Reports = &leastconnbalancer.Reports{Interval: leastconnbalancer.Duration(o.asked)}
	}
	target := o.target
	if target == "" {
		return openFleet(cfg)
	}
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(cfg.ServiceConfig()))
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

// startReporting starts nodes that report.
func startReporting(names ...string) (nodes []*leastconntest.Node, err error) {
	for _, name := range names {
		load := serverload.New(serverload.Options{})
		n, err := leastconntest.StartNode(leastconntest.Options{
			Name: name, ServerOptions: []grpc.ServerOption{grpc.StatsHandler(load)},
			Register: func(s grpc.ServiceRegistrar) { _ = load.Register(s) }, // a node has no other service of ORCA
		})
		if err != nil {
			leastconntest.CloseNodes(nodes...)
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// openFleet starts three servers, of which the channel is told of two at first.
func openFleet(cfg leastconnbalancer.Config) (*service, error) {
	nodes, err := startReporting("a", "b", "c")
	if err != nil {
		return nil, err
	}
	channel, err := leastconntest.Dial(leastconntest.ChannelConfig{
		Target: "fleet", Endpoints: leastconntest.Endpoints(nodes[:2]...), ServiceConfig: cfg.ServiceConfig(),
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

package leastconnbalancer_test

import (
	"encoding/json"
	"testing"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/leastrequest" // a peer
	_ "google.golang.org/grpc/balancer/roundrobin"   // a peer
	"google.golang.org/grpc/serviceconfig"

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer" // the policy
)

// benchPolicy is a registered balancer and the config to run it with.
type benchPolicy struct {
	label  string // its name in the benchmarks
	name   string // its name in gRPC's registry
	config string
	peer   bool // built upon endpointsharding, whose bring-up is quadratic
}

var (
	benchLeastConn      = benchPolicy{label: "least_conn", name: "least_conn", config: `{"resourceKey":"bench"}`}
	benchRoundRobin     = benchPolicy{label: "round_robin", name: "round_robin", peer: true}
	benchLeastRequest2  = benchPolicy{label: "least_request_2", name: "least_request_experimental", config: `{"choiceCount":2}`, peer: true}
	benchLeastRequest10 = benchPolicy{label: "least_request_10", name: "least_request_experimental", config: `{"choiceCount":10}`, peer: true}
)

// builder returns the registered builder and the parsed config, which is nil for a policy without one.
func (p benchPolicy) builder(tb testing.TB) (balancer.Builder, serviceconfig.LoadBalancingConfig) {
	tb.Helper()
	builder := balancer.Get(p.name)
	if builder == nil {
		tb.Fatalf("%s is not registered", p.name)
	}
	if p.config == "" {
		return builder, nil
	}
	parser, ok := builder.(balancer.ConfigParser)
	if !ok {
		tb.Fatalf("%s has no ParseConfig", p.name)
	}
	config, err := parser.ParseConfig(json.RawMessage(p.config))
	if err != nil {
		tb.Fatalf("%s: %v", p.name, err)
	}
	return builder, config
}

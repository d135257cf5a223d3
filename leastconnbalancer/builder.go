// Package leastconnbalancer is the least_conn load balancing policy for
// grpc-go. Importing it registers the policy; a service config selects it:
//
//	import _ "github.com/leastconn/grpc-leastconn/leastconnbalancer"
//
//	conn, err := grpc.NewClient("dns:///api.example.com:443",
//		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"least_conn":{}}]}`))
//
// Each RPC goes to a ready endpoint with the fewest in flight for its weight,
// exactly: it leaves none a whole RPC above its weighted share. Among those that
// remain they take turns in proportion to their weights. The counts belong to the
// endpoints and are shared by all channels of the process that have the same
// resource key (see [Config]): they outlive resolver updates, reconnects,
// endpoints that leave and return, and the balancer itself, for as long as an
// RPC is in flight. An RPC is in flight from its pick until gRPC reports its
// end, which for a stream is when the application has read its final status,
// cancels its context, or closes the channel.
//
// The policy keeps one connection to each endpoint of the resolver's list.
// Endpoints listed twice count once. Weights, identities and the resource key
// can be set by the resolver: see package resolver of this module.
//
// [Snapshots] and [Metrics] show the load; package debugpage serves it as a page.
package leastconnbalancer

import (
	"encoding/json"
	"net/url"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/serviceconfig"
)

func init() { balancer.Register(builder{}) }

// builder implements balancer.Builder and balancer.ConfigParser.
type builder struct{}

func (builder) Name() string { return Name }

func (builder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	b := &leastConn{
		cc:       cc,
		opts:     opts,
		builder:  balancer.Get(pickfirst.Name),
		children: children{byKey: map[string]*child{}},
	}
	b.levels = levels{mu: &b.mu, expired: b.publishLocked}
	if opts.Target.URL != (url.URL{}) {
		b.target = opts.Target.String()
	}
	b.meter = newMeter(cc.MetricsRecorder(), b.target)
	return b
}

func (builder) ParseConfig(js json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	return parseConfig(js)
}

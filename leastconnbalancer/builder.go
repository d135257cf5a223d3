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
		children: map[string]*child{},
	}
	if opts.Target.URL != (url.URL{}) {
		b.target = opts.Target.String()
	}
	b.meter = newMeter(cc.MetricsRecorder(), b.target)
	return b
}

func (builder) ParseConfig(js json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	return parseConfig(js)
}

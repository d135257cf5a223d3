package leastconnbalancer_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/weightedtarget" // names localities, as xDS does
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

const localityLabel = "grpc.lb.locality"

func init() { balancer.Register(&located) }

// located gives least_conn below weighted_target the endpoints that only xDS can
// address to a locality.
var located locatedBuilder

type locatedBuilder struct {
	mu        sync.Mutex
	endpoints []resolver.Endpoint
}

func (*locatedBuilder) Name() string { return "least_conn_located" }

func (*locatedBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return locatedBalancer{balancer.Get(leastconnbalancer.Name).Build(cc, opts)}
}

func (*locatedBuilder) ParseConfig(js json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	return balancer.Get(leastconnbalancer.Name).(balancer.ConfigParser).ParseConfig(js)
}

func (l *locatedBuilder) list(nodes ...*leastconntest.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endpoints = leastconntest.Endpoints(nodes...)
}

// locatedBalancer embeds least_conn to intercept UpdateClientConnState.
type locatedBalancer struct{ balancer.Balancer }

func (b locatedBalancer) UpdateClientConnState(s balancer.ClientConnState) error {
	located.mu.Lock()
	s.ResolverState.Endpoints = located.endpoints
	located.mu.Unlock()
	return b.Balancer.UpdateClientConnState(s)
}

// inLocality is a service config with the policy in one locality.
func inLocality(name string) string {
	return `{"loadBalancingConfig":[{"weighted_target_experimental":{"targets":{"` + name +
		`":{"weight":1,"childPolicy":[{"least_conn_located":{}}]}}}}]}`
}

// What a locality has counted stays with it.
func TestMetricsNameTheLocality(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	located.list(ns...)
	cfg, m := metered(leastconntest.ChannelConfig{ServiceConfig: inLocality("here")})
	c := l.dialWith(cfg, ns...)
	c.hold(3)
	for _, s := range m.Collect() {
		if strings.HasPrefix(s.Metric.Name, metric("")) {
			require.Equal(t, "here", s.Label(localityLabel), s.Metric.Name)
		}
	}
	require.Equal(t, map[string]int{"here": 3}, by(m.Collect(), "picks", localityLabel))
	require.NoError(t, c.UpdateConfig(inLocality("there"), leastconntest.Endpoints(ns...)...))
	l.wait("only the new locality is left", func() bool {
		gauges := by(m.Collect(), "in_flight", localityLabel)
		_, old := gauges["here"]
		return gauges["there"] == 6 && !old
	})
	c.waitReady(ns...)
	c.hold(1)
	require.Equal(t, map[string]int{"here": 3, "there": 1}, by(m.Collect(), "picks", localityLabel))
}

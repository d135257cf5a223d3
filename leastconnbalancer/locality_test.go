package leastconnbalancer_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/balancer/weightedtarget"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

func init() { balancer.Register(&localityPolicy) }

// localityPolicy gives least_conn below weighted_target the endpoints that only
// xDS can address to a locality.
var localityPolicy localityBuilder

type localityBuilder struct {
	endpoints []resolver.Endpoint
	byName    map[string][]resolver.Endpoint // of localities that have others
	clusters  map[string]string              // of localities
}

func (*localityBuilder) Name() string { return "least_conn_in_locality" }

func (l *localityBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	return localityBalancer{balancer.Get(leastconnbalancer.Name).Build(cc, opts), *l}
}

func (*localityBuilder) ParseConfig(js json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	return balancer.Get(leastconnbalancer.Name).(balancer.ConfigParser).ParseConfig(js)
}

// localityBalancer embeds least_conn to intercept UpdateClientConnState.
type localityBalancer struct {
	balancer.Balancer
	localityBuilder
}

func (b localityBalancer) UpdateClientConnState(s balancer.ClientConnState) error {
	s.ResolverState.Endpoints = b.endpoints
	locality := weightedtarget.LocalityFromResolverState(s.ResolverState)
	if own, ok := b.byName[locality]; ok {
		s.ResolverState.Endpoints = own
	}
	if cluster, ok := b.clusters[locality]; ok {
		s.ResolverState = weightedroundrobin.SetBackendService(s.ResolverState, cluster)
	}
	return b.Balancer.UpdateClientConnState(s)
}

// inLocalities selects least_conn in localities of equal weights.
func inLocalities(config string, names ...string) string {
	var targets []string
	for _, name := range names {
		targets = append(targets, `"`+name+`":{"weight":1,"childPolicy":[{"least_conn_in_locality":`+config+`}]}`)
	}
	return `{"loadBalancingConfig":[{"weighted_target_experimental":{"targets":{` + strings.Join(targets, ",") + `}}}]}`
}

// What a locality has counted stays with it.
func TestMetricsNameTheLocality(t *testing.T) {
	in := func(name string) string { return inLocalities(`{}`, name) }
	e := newEnv(t)
	ns := e.nodes("a", "b")
	localityPolicy.endpoints = leastconntest.Endpoints(ns...)
	cfg, r := recorded(leastconntest.ChannelConfig{ServiceConfig: in("here")})
	c := e.dialWith(cfg, ns...)
	c.hold(3)
	for _, s := range r.Collect() {
		if strings.HasPrefix(s.Metric.Name, metric("")) {
			require.Equal(t, "here", s.Label(localityLabel), s.Metric.Name)
		}
	}
	require.Equal(t, map[string]int{"here": 3}, r.by("picks", localityLabel))
	require.NoError(t, c.UpdateConfig(in("there"), leastconntest.Endpoints(ns...)...))
	e.wait("only the new locality is left", func() bool {
		gauges := r.by("in_flight", localityLabel)
		_, old := gauges["here"]
		return gauges["there"] == 6 && !old
	})
	c.waitReady(ns...)
	c.hold(1)
	require.Equal(t, map[string]int{"here": 3, "there": 1}, r.by("picks", localityLabel))
}

package leastconnbalancer_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// parse reads a config as gRPC does.
func parse(js string) (leastconnbalancer.Config, error) {
	c, err := balancer.Get(leastconnbalancer.Name).(balancer.ConfigParser).ParseConfig(json.RawMessage(js))
	if err != nil {
		return leastconnbalancer.Config{}, err
	}
	return *c.(*leastconnbalancer.Config), nil
}

func TestServiceConfigSelectsThePolicy(t *testing.T) {
	t.Parallel()
	for name, sc := range map[string]string{
		"loadBalancingConfig":       selecting(`{}`),
		"loadBalancingConfig, null": selecting(`null`),
		"loadBalancingPolicy":       `{"loadBalancingPolicy":"least_conn"}`,
		"after an unknown policy":   `{"loadBalancingConfig":[{"no_such_policy":{}},{"least_conn":{}},{"round_robin":{}}]}`,
		"both fields":               `{"loadBalancingPolicy":"round_robin","loadBalancingConfig":[{"least_conn":{}}]}`,
		"unknown fields":            selecting(`{"fromTheFuture":{"a":[1]}}`),
		"rendered":                  leastconnbalancer.Config{}.ServiceConfig(),
	} {
		t.Run(name, func(t *testing.T) {
			e := parallelEnv(t)
			ns := e.nodes("a", "b")
			c := e.dialWith(leastconntest.ChannelConfig{ServiceConfig: sc}, ns...)
			c.load(ns, 0, 3)
			_, by := c.hold(3)
			require.Equal(t, map[string]int{"a": 3}, by)
		})
	}
}

// A config that the resolver sends, and that is wrong, leaves the last good one
// in use, also for the list that comes with it.
func TestWrongConfigFromTheResolver(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	c := e.unused(leastconntest.ChannelConfig{})
	c.key = e.Name()
	require.NoError(t, c.UpdateConfig(keyed(c.key).ServiceConfig, leastconntest.Endpoints(ns[:2]...)...))
	c.waitReady(ns[:2]...)
	c.hold(4)
	wrongErr := c.UpdateConfig(selecting(`{"resourceKey":5}`))
	require.ErrorContains(t, wrongErr, `least_conn: field resourceKey: value 5: want a string`)
	err := c.UpdateState(resolver.State{
		Endpoints:     leastconntest.Endpoints(ns...),
		ServiceConfig: &serviceconfig.ParseResult{Err: wrongErr},
	})
	require.ErrorIs(t, err, balancer.ErrBadResolverState)
	c.waitReady(ns[2])
	_, by := c.hold(2)
	require.Equal(t, map[string]int{"c": 2}, by)
	c.counts(ns, 2, 2, 2)
}

func TestWrongConfigFromTheResolverAtFirst(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a")
	c := e.unused(leastconntest.ChannelConfig{})
	err := c.UpdateState(resolver.State{
		Endpoints:     leastconntest.Endpoints(ns...),
		ServiceConfig: &serviceconfig.ParseResult{Err: c.UpdateConfig(selecting(`{"resourceKey":5}`))},
	})
	require.ErrorIs(t, err, balancer.ErrBadResolverState)
	require.ErrorContains(t, c.unavailable(), "field resourceKey: value 5")

	require.NoError(t, c.UpdateConfig(selecting(`{}`), leastconntest.Endpoints(ns...)...))
	c.waitReady(ns...)
	require.Equal(t, "a", c.unary())
}

// A policy above this one may hand over a configuration that it has made in Go. What is out of bounds
// there is refused as it is when it is read, and the last good one stays in use.
func TestConfigThatNobodyHasRead(t *testing.T) {
	nan := math.NaN()
	for says, cfg := range map[string]leastconnbalancer.Config{
		"field reports.interval":     {Reports: &leastconnbalancer.Reports{Interval: -1}},
		"field slowStart.aggression": {SlowStart: &leastconnbalancer.SlowStart{Window: 1, Aggression: &nan}},
		"field rebalance.perSecond":  {Rebalance: &leastconnbalancer.Rebalance{PerSecond: &nan}},
		"field maxQueued":            {MaxQueued: ptr[uint32](0)},
	} {
		inFakeTime(t, says, func(t *testing.T, c *fakeConn) {
			list := []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "a"}}}}
			refused := func(cfg serviceconfig.LoadBalancingConfig) {
				c.config = cfg
				err := c.update(list)
				require.ErrorIs(t, err, balancer.ErrBadResolverState)
				require.ErrorContains(t, err, says)
			}
			refused(cfg)
			require.Contains(t, c.at(), says)
			c.config = leastconnbalancer.Config{ResourceKey: c.target.String(), MaxInFlight: 7}
			require.NoError(t, c.update(list))
			c.connect("a")
			refused(&cfg)
			require.Equal(t, "a", c.at())
			require.EqualValues(t, 7, c.endpoint("a").Members[0].MaxInFlight)
		})
	}
}

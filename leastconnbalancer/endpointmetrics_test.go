package leastconnbalancer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// Picks and penalties are counted by endpoint: what the servers have begun and failed, none of it
// lost when one leaves, when the resource key changes, or when the channel closes. Without the
// endpoint they are what they were.
func TestCountersByEndpoint(t *testing.T) {
	e := newEnv(t)
	ns := e.nodes("a", "b", "c")
	cfg, r := recorded(guarded(leastconnbalancer.Config{FailurePenalty: leastconnbalancer.NewDuration(time.Minute)}))
	c := e.dialWith(cfg, ns...)
	begun := func() map[string]int {
		all := map[string]int{"": 0}
		for _, n := range ns {
			all[n.Addr()] = n.Started()
		}
		return all
	}
	require.Equal(t, map[string]int{"": 0, ns[0].Addr(): 0, ns[1].Addr(): 0, ns[2].Addr(): 0}, r.by("picks", endpointLabel))
	c.hold(6) // level, so that calls go to all in turn
	require.Equal(t, begun(), r.by("picks", endpointLabel))
	require.Equal(t, 6, r.counters()["picks"])
	ns[0].SetFail(codes.Unavailable)
	for r.counters()["penalties"] == 0 {
		_, _ = c.Unary(e.ctx)
	}
	ns[0].SetFail(codes.OK)
	require.Equal(t, map[string]int{"": 0, ns[0].Addr(): r.counters()["penalties"], ns[1].Addr(): 0, ns[2].Addr(): 0}, r.by("penalties", endpointLabel))

	c.calls(4)
	c.update(ns[1:]...) // a leaves with what was not recorded yet
	c.calls(3)
	require.Equal(t, begun(), r.by("picks", endpointLabel))
	c.calls(3)
	c.reconfigure(leastconnbalancer.Config{ResourceKey: e.Name()}, ns[1:]...)
	c.key = e.Name()
	c.calls(3)
	require.Equal(t, begun(), r.by("picks", endpointLabel))
	c.calls(3)
	require.NoError(t, c.Close())
	got := r.by("picks", endpointLabel)
	require.Equal(t, begun(), got)
	sum := 0
	for _, n := range got {
		sum += n
	}
	require.Equal(t, sum, r.seen()["picks"])
}

// Channels of one target count by endpoint what is their own.
func TestCountersByEndpointOfTwoChannels(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	cfg, r := recorded(leastconntest.ChannelConfig{Target: e.Name()})
	second := newCountRecorder()
	one := e.dialWith(cfg, ns...)
	cfg.DialOptions = []grpc.DialOption{grpc.WithStatsHandler(second)}
	two := e.dialWith(cfg, ns...)
	one.waitMembers(2, ns...)
	one.hold(3)
	two.hold(3)
	mine, others := r.by("picks", endpointLabel), second.by("picks", endpointLabel)
	for _, n := range ns {
		require.Equal(t, n.Started(), mine[n.Addr()]+others[n.Addr()])
	}
	require.Equal(t, 3, mine[ns[0].Addr()]+mine[ns[1].Addr()])
}

// Caps and weights are told by endpoint, and their sums without one. There is no cap where none is
// configured.
func TestCapsAndWeights(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	a, b, c := ns[0].Addr(), ns[1].Addr(), ns[2].Addr()
	cfg, r := recorded(leastconntest.ChannelConfig{})
	cfg.Endpoints = []resolver.Endpoint{
		lcresolver.SetMaxInFlight(ns[0].Endpoint(), 7), lcresolver.SetWeight(ns[1].Endpoint(), 0), lcresolver.SetMaxInFlight(lcresolver.SetWeight(ns[2].Endpoint(), 3), 5),
	}
	ch := e.dialWith(cfg)
	ch.waitReady(ns...)
	require.Equal(t, map[string]int{"": 12, a: 7, c: 5}, r.by("max_in_flight", endpointLabel))
	require.Equal(t, map[string]int{"": 4000, a: 1000, b: 0, c: 3000}, r.by("effective_weight", endpointLabel))
	require.Equal(t, map[string]int{"": 12}, r.exported()["max_in_flight"])
	require.Equal(t, map[string]int{"": 4000}, r.exported()["effective_weight"])
	require.NoError(t, ch.Update(leastconntest.Endpoints(ns...)...))
	require.Empty(t, r.by("max_in_flight", endpointLabel))
}

// A weight is told as slow start leaves it.
func TestWeightsOfASlowStart(t *testing.T) {
	inRecordedTime(t, func(t *testing.T, c *fakeConn, r *countRecorder) {
		const config = `{"slowStart":{"window":"10s"}}`
		c.list(config, "a")
		c.connect("a")
		c.list(config, "ab")
		c.connect("b")
		synctest.Wait()
		require.Equal(t, map[string]int{"": 1100, "a": 1000, "b": 100}, r.by("effective_weight", endpointLabel))
		passes(5 * time.Second)
		require.InDelta(t, 500, r.by("effective_weight", endpointLabel)["b"], 10)
		passes(5 * time.Second)
		require.Equal(t, map[string]int{"": 2000, "a": 1000, "b": 1000}, r.by("effective_weight", endpointLabel))
	})
}

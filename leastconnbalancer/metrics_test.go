package leastconnbalancer_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// gaugesOf leaves counters out, countersOf gauges.
func gaugesOf(samples []leastconntest.Sample) []leastconntest.Sample {
	return slices.DeleteFunc(samples, func(s leastconntest.Sample) bool { return s.Metric.Type != estats.MetricTypeIntAsyncGauge })
}

func countersOf(samples []leastconntest.Sample) []leastconntest.Sample {
	return slices.DeleteFunc(samples, func(s leastconntest.Sample) bool { return s.Metric.Type != estats.MetricTypeIntCount })
}

// live is what the in-flight gauge should show: what the nodes handle now.
func live(nodes ...*leastconntest.Node) map[string]int {
	want := map[string]int{"": 0}
	for _, n := range nodes {
		want[n.Addr()] = n.Live()
		want[""] += n.Live()
	}
	return want
}

func TestD89GaugeIsWhatTheServersHandle(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	cfg, m := metered(leastconntest.ChannelConfig{})
	c := l.dialWith(cfg, ns...)
	held, picks := []*leastconntest.Stream{}, 0
	for range 20 {
		opened := 1 + rand.IntN(9)
		more, _ := c.hold(opened)
		held, picks = append(held, more...), picks+opened
		rand.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		ended := rand.IntN(len(held))
		require.NoError(t, leastconntest.EndAll(held[:ended]))
		held = held[ended:]
		require.Equal(t, live(ns...), m.inFlight())
	}
	require.Equal(t, map[string]int{"picks": picks}, m.counters())
	require.Equal(t, len(held), m.inFlight()[""])
	require.NoError(t, leastconntest.EndAll(held))
	require.Equal(t, map[string]int{"": 0, ns[0].Addr(): 0, ns[1].Addr(): 0, ns[2].Addr(): 0}, m.inFlight())
}

// The series of an endpoint ends when it is gone and its last RPC is, too.
func TestSeriesOfAnEndpointEnds(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	cfg, m := metered(leastconntest.ChannelConfig{})
	c := l.dialWith(cfg, ns...)
	held := c.load(ns, 2, 0)
	c.update(ns[1])
	require.Equal(t, map[string]int{"": 2, ns[0].Addr(): 2, ns[1].Addr(): 0}, m.inFlight())
	require.Equal(t, map[string]int{"ready": 1, "draining": 0, "not_ready": 0, "departed": 1}, m.states())
	require.NoError(t, held[0].End())
	require.Equal(t, map[string]int{"": 1, ns[0].Addr(): 1, ns[1].Addr(): 0}, m.inFlight())
	require.NoError(t, held[1].End())
	require.Equal(t, map[string]int{"": 0, ns[1].Addr(): 0}, m.inFlight())
	require.Equal(t, map[string]int{"ready": 1, "draining": 0, "not_ready": 0, "departed": 0}, m.states())
	require.NoError(t, c.Close())
	require.Empty(t, gaugesOf(m.Collect()))
}

// An endpoint of several addresses is one series, under the first of them.
func TestSeriesOfAnEndpointIsOne(t *testing.T) {
	l := newLab(t)
	n := l.nodes("a")[0]
	cfg, m := metered(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{under(n, "v6", "v4")}})
	cfg.DialOptions = append(cfg.DialOptions, aliases())
	c := l.dialWith(cfg)
	c.hold(2)
	require.Equal(t, map[string]int{"": 2, under(n, "v4").Addresses[0].Addr: 2}, m.inFlight())
}

func TestD85DrainIsSeen(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	cfg, m := metered(weighings[0].config())
	cfg.Endpoints = weighings[0].state(ns, 1, 1).Endpoints
	c := l.dialWith(cfg, ns...)
	held := c.load(ns, 3, 0)
	require.Equal(t, map[string]int{"ready": 2, "draining": 0, "not_ready": 0, "departed": 0}, m.states())
	require.NoError(t, c.UpdateState(weighings[0].state(ns, 0, 1)))
	for left := 3; left > 0; left-- {
		require.Equal(t, map[string]int{"ready": 1, "draining": 1, "not_ready": 0, "departed": 0}, m.states())
		require.Equal(t, map[string]int{"": left, ns[0].Addr(): left, ns[1].Addr(): 0}, m.inFlight())
		require.NoError(t, held[left-1].End())
	}
	require.Equal(t, 1, m.states()["draining"])
	require.Equal(t, 0, m.value("in_flight", endpointLabel, ns[0].Addr()))
	c.update(ns[1])
	require.Equal(t, 0, m.states()["draining"])
	require.Equal(t, -1, m.value("in_flight", endpointLabel, ns[0].Addr()))
}

func TestEndpointsByState(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	cfg, m := metered(quickly())
	c := l.dialWith(cfg, ns...)
	held := c.load(ns, 0, 0, 0, 1)
	ns[2].Stop()
	require.NoError(t, c.Update(ns[0].Endpoint(), lcresolver.SetWeight(ns[1].Endpoint(), 0), ns[2].Endpoint()))
	l.wait("c is not ready", func() bool { return !c.ready(ns[2]) })
	require.Equal(t, map[string]int{"ready": 1, "draining": 1, "not_ready": 1, "departed": 1}, m.states())
	require.NoError(t, ns[2].Restart())
	c.waitReady(ns[2])
	require.NoError(t, leastconntest.EndAll(held))
	require.Equal(t, map[string]int{"ready": 2, "draining": 1, "not_ready": 0, "departed": 0}, m.states())
}

// Channels that share a ledger report the same: the load of all of them.
func TestSharedLedgerReportsTheSame(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	cfg, first := metered(leastconntest.ChannelConfig{Target: l.Name()})
	one := l.dialWith(cfg, ns...)
	cfg, second := metered(leastconntest.ChannelConfig{Target: l.Name()})
	cfg.DialOptions = append(cfg.DialOptions, first.DialOption())
	two := l.dialWith(cfg, ns...)
	one.waitMembers(2, ns...)
	one.hold(3)
	two.hold(2)
	require.Equal(t, live(ns...), first.inFlight())
	require.Equal(t, gaugesOf(second.Collect()), gaugesOf(first.Collect()), "of one channel, and of both")
	require.Equal(t, map[string]int{"picks": 2}, second.counters(), "of the channel itself")
	require.Equal(t, map[string]int{"picks": 5}, first.counters())
	for _, s := range second.Collect() {
		require.Equal(t, one.Conn().CanonicalTarget(), s.Label(targetLabel), s.Metric.Name)
	}
}

func TestImbalance(t *testing.T) {
	for name, tt := range map[string]struct {
		weights []uint32
		load    []int
		want    int
	}{
		"level":                        {[]uint32{1, 1, 1}, []int{2, 2, 2}, 0},
		"counts differ":                {[]uint32{1, 1, 1}, []int{4, 1, 2}, 3},
		"same weights, high":           {[]uint32{7, 7, 7}, []int{4, 1, 2}, 3},
		"in proportion to weights":     {[]uint32{3, 1, 2}, []int{6, 2, 4}, 0},
		"not in proportion":            {[]uint32{3, 1}, []int{6, 1}, 2},
		"draining node is left out":    {[]uint32{0, 1, 1}, []int{9, 2, 1}, 1},
		"only the light one is loaded": {[]uint32{3, 1}, []int{0, 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes(names(len(tt.load))...)
			cfg, m := metered(leastconntest.ChannelConfig{})
			c := l.dialWith(cfg, ns...)
			c.load(ns, tt.load...)
			require.NoError(t, c.UpdateState(weighings[0].state(ns, tt.weights...)))
			require.Equal(t, tt.want, m.value("imbalance"))
		})
	}
}

func TestQueueLength(t *testing.T) {
	l := newLab(t)
	n := l.nodes("a")[0]
	cfg, m := metered(guarded(capped(1)))
	c := l.dialWith(cfg, n)
	require.Equal(t, 0, m.value("queue_length"))
	held, _ := c.hold(1)
	rpcs := c.line(3)
	require.Equal(t, 3, m.value("queue_length"))
	require.Equal(t, map[string]int{"picks": 1, "picks_queued": 3}, m.counters())
	require.NoError(t, held[0].End())
	for _, rpc := range rpcs {
		require.NoError(t, (<-rpc).err)
	}
	require.Equal(t, 0, m.value("queue_length"))
	require.Equal(t, map[string]int{"picks": 4, "picks_queued": 3}, m.counters())
}

// An abandoned stream shows: its age grows until its context ends.
func TestD16AgeOfAnAbandonedStream(t *testing.T) {
	l := newLab(t)
	n := l.nodes("a")[0]
	cfg, m := metered(leastconntest.ChannelConfig{})
	c := l.dialWith(cfg, n)
	require.Equal(t, 0, m.value("oldest_in_flight_age"))
	ctx, cancel := context.WithCancel(l.ctx)
	s, err := c.Client().StreamingOutputCall(ctx, &grpc_testing.StreamingOutputCallRequest{})
	require.NoError(t, err)
	_, err = s.Recv()
	require.NoError(t, err)
	n.EndStreams()
	require.NoError(t, n.WaitLive(l.ctx, 0))
	l.wait("the stream is a second old", func() bool { return m.value("oldest_in_flight_age") >= 1 })
	require.Equal(t, 1, m.value("in_flight", endpointLabel, n.Addr()))
	cancel()
	l.wait("it is forgotten", func() bool { return m.value("oldest_in_flight_age") == 0 })
	require.Equal(t, 0, m.value("in_flight", endpointLabel, n.Addr()))
}

package leastconnbalancer_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Each attempt is a pick. A later one is elsewhere when it avoids the nodes
// tried since the RPC has last started over. One that fails at once leaves a
// penalty, if there is another node.
func TestCountersOfRetries(t *testing.T) {
	for name, tt := range map[string]struct {
		attempts, nodes int
		want            map[string]int
	}{
		"as many attempts as nodes": {2, 2, map[string]int{"picks": 2, "retries_to_other_endpoint": 1, "penalties": 2}},
		"more attempts than nodes":  {5, 3, map[string]int{"picks": 5, "retries_to_other_endpoint": 3, "penalties": 5}},
		"a single node":             {3, 1, map[string]int{"picks": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes(names(tt.nodes)...)
			cfg, m := metered(retrying(tt.attempts))
			cfg.ServiceConfig = strings.Replace(cfg.ServiceConfig, `"0s"`, `"60s"`, 1) // the penalty
			c := l.dialParent(&parent{}, cfg, ns...)
			failing(ns...)
			c.failed()
			require.Equal(t, tt.want, m.counters())
			require.Equal(t, live(ns...), m.inFlight(), "a penalty is not in flight")
			for _, n := range ns {
				n.SetFail(codes.OK)
			}
			c.calls(10)
			tt.want["picks"] += 10
			require.Equal(t, tt.want, m.counters())
		})
	}
}

// A policy above that reports the end of an attempt twice is found out, and the
// counts stay right.
func TestDoubleReleasesAreCounted(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	cfg, m := metered(leastconntest.ChannelConfig{})
	p := &parent{twice: true}
	c := l.dialParent(p, cfg, ns...)
	c.calls(7)
	held, _ := c.hold(4)
	// Each end is reported once more at once, and once more at the next one.
	require.Equal(t, map[string]int{"picks": 11, "double_releases": 7 + 6}, m.counters())
	require.NoError(t, leastconntest.EndAll(held[:3]))
	require.Equal(t, map[string]int{"picks": 11, "double_releases": 10 + 9}, m.counters())
	require.Equal(t, live(ns...), m.inFlight())
	require.Equal(t, 1, m.inFlight()[""])
}

// With a sane parent there are none, whatever becomes of the RPCs.
func TestNoDoubleReleaseOtherwise(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	cfg, m := metered(retrying(3))
	c := l.dialParent(&parent{}, cfg, ns...)
	held, _ := c.hold(6)
	leastconntest.CancelAll(held[:2])
	ns[0].FailStreams(codes.Internal)
	ns[1].GoAway()
	failing(ns...)
	c.failed()
	require.NoError(t, c.UpdateNodes(ns[1]))
	require.NoError(t, c.Close())
	l.wait("all have ended", func() bool { return c.snapshot().InFlight == 0 })
	require.Zero(t, m.counters()["double_releases"])
}

// Collections, configurations and ledgers that change, and picks, all at once:
// no pick is lost or counted twice.
func TestCountersAreExactAmidChanges(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	cfg, m := metered(leastconntest.ChannelConfig{})
	p := &parent{}
	c := l.dialParent(p, cfg, ns...)
	var over atomic.Bool
	var changing, calling sync.WaitGroup
	steadily := func(do func(i int)) { // while RPCs run
		changing.Go(func() {
			for i := 0; !over.Load(); i++ {
				do(i)
				seen := p.picks.Load()
				l.wait("RPCs run on", func() bool { return over.Load() || p.picks.Load() > seen+5 })
			}
		})
	}
	steadily(func(int) { m.Collect() })
	steadily(func(i int) {
		cfg := leastconnbalancer.Config{ResourceKey: []string{"", t.Name(), "other " + t.Name()}[i%3], MaxInFlight: uint32(i % 2 * 100)}
		config := strings.Replace(cfg.ServiceConfig(), leastconnbalancer.Name, "least_conn_parent", 1)
		assert.NoError(t, c.UpdateConfig(config, leastconntest.Endpoints(ns[i%2:]...)...))
	})
	for range 4 {
		calling.Go(func() {
			for range 200 {
				_, err := c.Unary(l.ctx)
				assert.NoError(t, err)
			}
		})
	}
	calling.Wait()
	over.Store(true)
	changing.Wait()
	require.Equal(t, int(p.picks.Load()), m.counters()["picks"])
	require.NoError(t, c.Close())
	require.Equal(t, int(p.picks.Load()), m.counters()["picks"])
	require.GreaterOrEqual(t, int(p.picks.Load()), 800)
}

// What RPCs that outlive their balancer do is nobody's: it has reported.
func TestCloseIsTheEndOfCounting(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a")
	cfg, m := metered(leastconntest.ChannelConfig{})
	c := l.dialParent(&parent{twice: true}, cfg, ns...)
	c.hold(3)
	require.NoError(t, c.Close())
	l.wait("all have ended", func() bool { return c.snapshot().InFlight == 0 })
	require.Equal(t, map[string]int{"picks": 3}, m.counters())
}

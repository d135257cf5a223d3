package leastconnbalancer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// levels lists the nodes of each level, the highest first.
func levels(levels ...[]*leastconntest.Node) []resolver.Endpoint {
	var eps []resolver.Endpoint
	for p, ns := range levels {
		for _, n := range ns {
			eps = append(eps, lcresolver.SetPriority(n.Endpoint(), uint32(p)))
		}
	}
	return eps
}

// priorityFailover configures how long RPCs wait for a level.
func priorityFailover(d time.Duration) leastconntest.ChannelConfig {
	return leastconntest.ChannelConfig{
		ServiceConfig: leastconnbalancer.Config{PriorityFailover: leastconnbalancer.NewDuration(d)}.ServiceConfig(),
	}
}

// dialLevels opens a channel whose first list has the endpoints, and waits
// until it can use the nodes.
func (l *lab) dialLevels(cfg leastconntest.ChannelConfig, eps []resolver.Endpoint, nodes ...*leastconntest.Node) *channel {
	l.Helper()
	cfg.Endpoints = eps
	return l.dialWith(cfg, nodes...)
}

// stop stops the node and waits until the channel has lost it.
func (c *channel) stop(n *leastconntest.Node) {
	c.lab.Helper()
	n.Stop()
	c.lab.wait(n.Name()+" is lost", func() bool { return !c.ready(n) })
}

func TestHighestLevelIsUsedAndAllConnect(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	c := l.dialLevels(leastconntest.ChannelConfig{}, levels(ns[3:], ns[1:3], ns[:1]), ns...)
	l.conns(ns, 1, 1, 1, 1)
	c.hold(3)
	require.Equal(t, map[string]int{"d": 10}, tally(c.calls(10)))
	c.counts(ns, 0, 0, 0, 3)
	for _, s := range c.snapshot().Endpoints {
		want := map[string]uint32{ns[0].Addr(): 2, ns[1].Addr(): 1, ns[2].Addr(): 1, ns[3].Addr(): 0}[s.Addresses[0]]
		require.Equal(t, want, s.Members[0].Priority, "%v", s)
	}
	require.NoError(t, c.Update(levels(ns[1:3], ns[3:], ns[:1])...))
	_, by := c.hold(4)
	require.Equal(t, map[string]int{"b": 2, "c": 2}, by)
	l.conns(ns, 1, 1, 1, 1)
}

// Levels may have any numbers, with gaps, and be listed in any order.
func TestPriorityNumbersAreAnOrder(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	at := func(n *leastconntest.Node, p uint32) resolver.Endpoint {
		return lcresolver.SetPriority(n.Endpoint(), p)
	}
	c := l.dialLevels(priorityFailover(time.Minute), []resolver.Endpoint{at(ns[0], 1<<32-1), at(ns[1], 7), at(ns[2], 100)}, ns...)
	for _, n := range []*leastconntest.Node{ns[1], ns[2], ns[0]} {
		require.Equal(t, n.Name(), c.unary())
		c.stop(n)
	}
	c.waitState(connectivity.TransientFailure)
	require.ErrorContains(t, c.unavailable(), "connection refused")
}

// When all nodes of a level have failed, RPCs do not wait for it.
func TestFailedLevelFailsOverAtOnce(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	cfg := priorityFailover(time.Hour)
	cfg.DialOptions = quickly().DialOptions
	c := l.dialLevels(cfg, levels(ns[:2], ns[2:]), ns...)
	for range 3 {
		c.stop(ns[0])
		require.Equal(t, "b", c.unary(), "one node is left on the level")
		c.stop(ns[1])
		require.Equal(t, "c", c.unary())
		require.NoError(t, ns[1].Restart())
		c.waitReady(ns[1])
		require.Equal(t, "b", c.unary())
		require.NoError(t, ns[0].Restart())
		c.waitReady(ns[0])
	}
	c.hold(2)
	c.counts(ns, 1, 1, 0)
}

// A level that is down at the start is not waited for, either.
func TestLevelThatFailsAtStart(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	ns[0].Stop()
	cfg := priorityFailover(time.Hour)
	cfg.DialOptions = quickly().DialOptions
	c := l.dialLevels(cfg, levels(ns[:1], ns[1:]), ns[1])
	require.Equal(t, "b", c.unary())
	require.NoError(t, ns[0].Restart())
	c.waitReady(ns[0])
	require.Equal(t, "a", c.unary())
}

// A level that has failed and comes back finds the counts of its streams.
func TestD94LevelIsBackWithItsCounts(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	cfg := leastconntest.ChannelConfig{ServiceConfig: `{"loadBalancingConfig":[{"least_conn":{"priorityFailover":"60s"}}],` +
		`"healthCheckConfig":{"serviceName":""}}`}
	c := l.dialLevels(cfg, levels(ns[:2], ns[2:]), ns...)
	held := c.load(ns[:2], 3, 2)
	stop := c.steady(ns[0], 3)
	for _, n := range ns[:2] {
		n.SetServing(false)
		l.wait(n.Name()+" is out of use", func() bool { return !c.ready(n) })
	}
	_, by := c.hold(4)
	require.Equal(t, map[string]int{"c": 4}, by)
	require.Equal(t, map[string]int{"c": 10}, tally(c.calls(10)))
	c.counts(ns, 3, 2, 4)
	require.NoError(t, leastconntest.PingAll(held))

	for _, n := range ns[:2] {
		n.SetServing(true)
		c.waitReady(n)
	}
	stop()
	_, by = c.hold(5)
	require.Equal(t, map[string]int{"a": 2, "b": 3}, by)
	c.counts(ns, 5, 5, 4)
	l.conns(ns, 1, 1, 1)
}

// A GOAWAY is no reason to use the backup: the level is back in a moment.
func TestGoAwayLandsNothingOnTheBackup(t *testing.T) {
	for name, cfg := range map[string]leastconntest.ChannelConfig{
		"without the interceptors": priorityFailover(time.Minute),
		"with the interceptors":    intercepted(priorityFailover(time.Minute)),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b")
			a, b := ns[0], ns[1]
			c := l.dialLevels(cfg, levels(ns[:1], ns[1:]), ns...)
			ctx, cancel := context.WithCancel(l.ctx)
			defer cancel()
			var callers sync.WaitGroup
			for i := range 16 {
				callers.Go(func() {
					for ctx.Err() == nil {
						if i%2 == 0 {
							_, _ = c.Unary(ctx)
						} else if s, err := c.Open(ctx); err == nil {
							s.Cancel()
						}
					}
				})
			}
			for range 60 {
				conns := a.Conns()
				a.GoAway()
				l.wait("a is ready again", func() bool { return a.Conns() > conns && c.ready(a) })
				seen := a.Started()
				l.wait("a is used again", func() bool { return a.Started() > seen+10 })
			}
			cancel()
			callers.Wait()
			require.Zero(t, b.Started(), "RPCs at the backup, %d at a", a.Started())
			c.counts(ns, 0, 0)
		})
	}
}

// Without waiting, RPCs go to the next level while one connects again.
func TestNoFailoverTimeUsesTheBackup(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	d := newDialer()
	cfg := priorityFailover(0)
	cfg.DialOptions = dialOptions(d)
	c := l.dialLevels(cfg, levels(ns[:1], ns[1:]), ns...)
	d.shut(ns[0])
	require.NoError(t, ns[0].Restart())
	l.wait("a connects again", func() bool { return d.attempts(ns[0]) == 2 })
	require.Equal(t, "b", c.unary())
	d.open(ns[0])
	c.waitReady(ns[0])
	require.Equal(t, "a", c.unary())
}

// With waiting, they wait for it, and resume there.
func TestReconnectingLevelIsWaitedFor(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	d := newDialer()
	cfg := priorityFailover(time.Hour)
	cfg.DialOptions = dialOptions(d)
	c := l.dialLevels(cfg, levels(ns[:1], ns[1:]), ns...)
	d.shut(ns[0])
	require.NoError(t, ns[0].Restart())
	l.wait("a connects again", func() bool { return d.attempts(ns[0]) == 2 })
	require.Equal(t, codes.DeadlineExceeded, c.brief())
	require.Equal(t, codes.DeadlineExceeded, c.brief(grpc.WaitForReady(true)))
	waiting := l.async(func() (string, error) { return c.Unary(l.ctx) })
	d.open(ns[0])
	require.Equal(t, result{node: "a"}, <-waiting)
	require.Zero(t, ns[1].Started())
}

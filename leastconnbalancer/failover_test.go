package leastconnbalancer_test

import (
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// blackhole is an endpoint that accepts connections and never says a word.
func (l *lab) blackhole() resolver.Endpoint {
	l.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(l, err)
	l.Cleanup(func() { listener.Close() })
	return resolver.Endpoint{Addresses: []resolver.Address{{Addr: listener.Addr().String()}}}
}

// A level that hangs at the start is given its time, from the start.
func TestHangingLevelIsGivenUp(t *testing.T) {
	for _, wait := range []time.Duration{0, 300 * time.Millisecond, time.Second} {
		t.Run(wait.String(), func(t *testing.T) {
			l := newLab(t)
			b := l.nodes("b")[0]
			cfg := priorityFailover(wait)
			cfg.Endpoints = append([]resolver.Endpoint{l.blackhole()}, lcresolver.SetPriority(b.Endpoint(), 1))
			c := l.unused(cfg)
			before := time.Now()
			require.Equal(t, "b", c.unary())
			took := time.Since(before)
			require.GreaterOrEqual(t, took, wait)
			require.Less(t, took, wait+8*time.Second, "the default is 10 s, a connection is given up after 20 s")
			require.Equal(t, map[string]int{"b": 10}, tally(c.calls(10)))
			c.waitState(connectivity.Ready)
		})
	}
}

// An endpoint that moves between levels is the same: its streams count, its
// connection stays.
func TestEndpointMovesBetweenLevels(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	a, b, other := ns[:1], ns[1:2], ns[2:]
	c := l.dialLevels(priorityFailover(time.Minute), levels(ns), ns...)
	held := c.load(ns, 3, 2, 1)
	for _, list := range [][]resolver.Endpoint{
		levels(ns[1:], a), levels(other, b, a), levels(a, nil, ns[1:]), levels(nil, nil, ns), levels(a, ns[1:]),
	} {
		require.NoError(t, c.Update(list...))
		c.counts(ns, 3, 2, 1)
		require.NoError(t, leastconntest.PingAll(held))
	}
	_, by := c.hold(2)
	require.Equal(t, map[string]int{"a": 2}, by)
	require.NoError(t, c.Update(levels(ns)...))
	_, by = c.hold(7)
	require.Equal(t, map[string]int{"b": 3, "c": 4}, by)
	c.counts(ns, 5, 5, 5)
	l.conns(ns, 1, 1, 1)
}

// The same address may stand in two levels of two channels: what either sends
// there, both count.
func TestTwoChannelsDisagreeOnLevels(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	config := leastconnbalancer.Config{ResourceKey: l.Name(), PriorityFailover: leastconnbalancer.NewDuration(time.Minute)}.ServiceConfig()
	dial := func(eps []resolver.Endpoint) *channel {
		return l.dialAs(l.Name(), leastconntest.ChannelConfig{ServiceConfig: config, Endpoints: eps}, ns...)
	}
	one, two := dial(levels(ns[:2], ns[2:])), dial(levels(ns[1:], ns[:1]))
	two.waitMembers(2, ns...)
	_, by := one.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	_, by = two.hold(4)
	require.Equal(t, map[string]int{"b": 1, "c": 3}, by)
	_, by = one.hold(3)
	require.Equal(t, map[string]int{"a": 2, "b": 1}, by)
	one.counts(ns, 4, 4, 3)

	two.lab.served(ns, 4, 4, 3)
	require.NoError(t, two.Update(levels(ns[:1], ns[1:])...))
	_, by = two.hold(1)
	require.Equal(t, map[string]int{"a": 1}, by)
	require.NoError(t, one.Close())
	l.wait("the first's streams are given back", func() bool { return two.snapshot().InFlight == 5 })
	two.counts(ns, 1, 1, 3)
}

// A level of which all nodes are draining is not available.
func TestDrainingLevelIsPassedOver(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	weighted := func(a, b, c uint32) []resolver.Endpoint {
		eps := levels(ns[:2], ns[2:])
		for i, w := range []uint32{a, b, c} {
			eps[i] = lcresolver.SetWeight(eps[i], w)
		}
		return eps
	}
	c := l.dialLevels(priorityFailover(time.Minute), weighted(1, 1, 1), ns...)
	c.load(ns[:2], 2, 1)
	for range 3 {
		require.NoError(t, c.Update(weighted(0, 1, 1)...))
		require.Equal(t, "b", c.unary())
		require.NoError(t, c.Update(weighted(0, 0, 1)...))
		require.Equal(t, "c", c.unary())
		c.counts(ns, 2, 1, 0)
		require.NoError(t, c.Update(weighted(1, 0, 1)...))
		require.Equal(t, "a", c.unary())
	}
	require.NoError(t, c.Update(weighted(0, 0, 0)...))
	require.ErrorContains(t, c.unavailable(), "least_conn: all 3 endpoints are draining (weight 0)")
	require.NoError(t, c.Update(weighted(1, 1, 1)...))
	_, by := c.hold(3)
	require.Equal(t, map[string]int{"a": 1, "b": 2}, by)
	l.conns(ns, 1, 1, 1)
}

// Levels come and go under load: no RPC fails, no stream is lost or miscounted.
func TestLevelsChangeUnderLoad(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	c := l.dialLevels(priorityFailover(time.Minute), levels(ns), ns...)
	held := c.load(ns, 4, 3, 2, 1)
	bg := c.background(2*time.Millisecond, 20*time.Second)
	stop := c.watch(valid)
	for range 60 {
		eps := leastconntest.Endpoints(ns...)
		rand.Shuffle(len(eps), func(i, j int) { eps[i], eps[j] = eps[j], eps[i] })
		for i := range eps {
			eps[i] = lcresolver.SetPriority(eps[i], rand.Uint32N(3))
			eps[i] = lcresolver.SetWeight(eps[i], rand.Uint32N(3))
		}
		eps[0] = lcresolver.SetWeight(eps[0], 1)
		require.NoError(t, c.Update(eps[:1+rand.IntN(4)]...))
		seen := bg.done.Load()
		l.wait("RPCs run", func() bool { return bg.done.Load() > seen+2 })
	}
	stop()
	bg.stop(l)
	require.NoError(t, leastconntest.PingAll(held))
	c.counts(ns, 4, 3, 2, 1)
}

// A channel that is closed while RPCs wait for a level leaves nothing, though
// they might have waited for an hour.
func TestClosedWhileALevelIsWaitedFor(t *testing.T) {
	l := newLab(t)
	b := l.nodes("b")[0]
	cfg := priorityFailover(time.Hour)
	cfg.Endpoints = append([]resolver.Endpoint{l.blackhole()}, lcresolver.SetPriority(b.Endpoint(), 1))
	c := l.dialWith(cfg, b)
	waiting := l.async(func() (string, error) { return c.Unary(l.ctx) })
	l.wait("the RPC waits", func() bool { return c.Conn().GetState() == connectivity.Connecting })
	ledger := c.ledger()
	require.NoError(t, c.Close())
	require.Error(t, (<-waiting).err)
	require.Zero(t, b.Started())
	l.collected(ledger)
}

// Levels that have gone leave nothing, however many there were.
func TestLevelsThatWentLeaveNothing(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a")
	c := l.dial(ns...)
	c.load(ns, 2)
	move := func(from, to uint32) {
		for p := from; p < to; p++ {
			require.NoError(t, c.Update(lcresolver.SetPriority(ns[0].Endpoint(), p)))
		}
	}
	move(0, 100)
	heap := heapInUse()
	move(100, 5000)
	l.wait("the heap has grown by less than 256 KB", func() bool { return heapInUse() < heap+256<<10 })
	require.EqualValues(t, 4999, c.member(ns[0]).Priority)
	c.counts(ns, 2)
	l.conns(ns, 1)
}

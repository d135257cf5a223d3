package leastconnbalancer_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

func TestD72AgedConnectionsAreReplaced(t *testing.T) {
	l := newLab(t)
	ns, err := leastconntest.StartNodes(leastconntest.Options{ServerOptions: []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: time.Second}),
	}}, names(100)...)
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(ns...) })
	c := l.dial(ns...)

	bg := c.background(5*time.Millisecond, 5*time.Second)
	conns, since := make([]int, len(ns)), make([]time.Time, len(ns))
	for i := range since {
		since[i] = time.Now()
	}
	var longest time.Duration
	l.wait("each node has aged out three connections", func() bool {
		aged := 0
		for i, n := range ns {
			if now := n.Conns(); now > conns[i] {
				longest = max(longest, time.Since(since[i]))
				conns[i], since[i] = now, time.Now()
			}
			if conns[i] > 3 {
				aged++
			}
		}
		return aged == len(ns)
	})
	bg.stop(l)
	require.Less(t, longest, 5*time.Second, "between two connections to a node")
	c.waitReady(ns...)
}

// Connections that are told to go away as soon as they are there still carry
// RPCs, and none that waits for the next one fails.
func TestConnectionsThatAgeAtOnce(t *testing.T) {
	l := newLab(t)
	ns, err := leastconntest.StartNodes(leastconntest.Options{ServerOptions: []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: time.Millisecond}),
	}}, names(3)...)
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(ns...) })
	p := &parent{}
	c := l.dialParent(p, leastconntest.ChannelConfig{
		Endpoints: leastconntest.Endpoints(ns...), DialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.WaitForReady(true))},
	})
	bg := c.background(2*time.Millisecond, time.Minute)
	stop := c.watch(valid)
	for _, n := range ns {
		l.wait("RPCs, and connections to "+n.Name(), func() bool { return n.Conns() > 3 && bg.done.Load() > 50 })
	}
	bg.stop(l)
	stop()
	require.Equal(t, p.picks.Load(), p.dones.Load(), "Dones for picks")
	require.Zero(t, c.snapshot().InFlight)
}

func TestD76AFailedNodeIsUsedAgain(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	b := ns[1]
	d := newDialer()
	c := l.dialWith(leastconntest.ChannelConfig{DialOptions: dialOptions(d)}, ns...)
	c.load(ns, 2, 0)

	b.Stop()
	l.wait("b is given up and tried again", func() bool { return !c.ready(b) && d.attempts(b) > 3 })
	require.Equal(t, map[string]int{"a": 10}, tally(c.calls(10)))
	require.NoError(t, b.Restart())
	c.waitReady(b)
	_, by := c.hold(2)
	require.Equal(t, map[string]int{"b": 2}, by)
	c.counts(ns, 2, 2)
}

func TestD76LostStreamsAreGivenBack(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	d := newDialer()
	c := l.dialWith(leastconntest.ChannelConfig{ServiceConfig: withoutPenalty, DialOptions: dialOptions(d)}, ns...)
	held := c.load(ns, 3, 3)

	ns[1].Stop()
	for _, s := range held {
		if s.Node() == "b" {
			require.Error(t, s.Wait())
		}
	}
	c.counts(ns, 3, 0)
	l.wait("b is not used any more", func() bool { return !c.ready(ns[1]) })
	require.NoError(t, ns[1].Restart())
	c.waitReady(ns[1])
	_, by := c.hold(3)
	require.Equal(t, map[string]int{"b": 3}, by)
}

func TestD77TheFirstRPCDoesNotWaitForConnect(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	for i := range 1000 {
		c := l.unused(leastconntest.ChannelConfig{Endpoints: leastconntest.Endpoints(ns...)})
		var first []<-chan result
		for range 1 + 3*(i%10/9) {
			first = append(first, l.async(func() (string, error) { return c.Unary(l.ctx) }))
		}
		c.Connect()
		for _, r := range first {
			require.NoError(t, (<-r).err)
		}
		require.NoError(t, c.Close())
	}
}

func TestD77ClosedChannelsLeaveNoGoroutine(t *testing.T) {
	l := newLab(t)
	ns := l.nodes(names(5)...)
	goroutines := runtime.NumGoroutine()
	for i := range 100 {
		c := l.unused(leastconntest.ChannelConfig{Endpoints: leastconntest.Endpoints(ns...)})
		c.Connect()
		switch i % 3 {
		case 0: // closed while it connects
		case 1:
			c.waitReady(ns...)
		case 2:
			_, err := c.Open(l.ctx) // left open
			require.NoError(t, err)
		}
		require.NoError(t, c.Close())
	}
	l.atMostGoroutines(goroutines)
	l.wait("no connection is left", func() bool {
		for _, n := range ns {
			if n.OpenConns() != 0 {
				return false
			}
		}
		return true
	})
}

func TestD77CloseDuringRPCs(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	for range 50 {
		c := l.unused(leastconntest.ChannelConfig{Endpoints: leastconntest.Endpoints(ns...)})
		var rpcs sync.WaitGroup
		var closing atomic.Bool
		first := make(chan struct{})
		answered := sync.OnceFunc(func() { close(first) })
		for range 4 {
			rpcs.Go(func() {
				var err error
				for ; err == nil; answered() {
					_, err = c.Unary(l.ctx)
				}
				assert.True(t, closing.Load(), "before Close: %v", err)
			})
		}
		<-first
		closing.Store(true)
		require.NoError(t, c.Close())
		rpcs.Wait()
		c.counts(ns, 0, 0)
	}
}

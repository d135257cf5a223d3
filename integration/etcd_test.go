package integration

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/naming/endpoints"
	etcdresolver "go.etcd.io/etcd/client/v3/naming/resolver"
	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// registry is a service as etcd's clients see it.
type registry struct {
	t         *testing.T
	endpoints endpoints.Manager
}

const etcdService = "chat"

func newRegistry(t *testing.T, c *clientv3.Client) registry {
	t.Helper()
	m, err := endpoints.NewManager(c, etcdService)
	require.NoError(t, err)
	return registry{t: t, endpoints: m}
}

// add registers the nodes, one after another.
func (r registry) add(nodes ...*leastconntest.Node) {
	r.t.Helper()
	for _, n := range nodes {
		err := r.endpoints.AddEndpoint(r.t.Context(), etcdService+"/"+n.Name(), endpoints.Endpoint{Addr: n.Addr()})
		require.NoError(r.t, err)
	}
}

func (r registry) remove(n *leastconntest.Node) {
	r.t.Helper()
	require.NoError(r.t, r.endpoints.DeleteEndpoint(r.t.Context(), etcdService+"/"+n.Name()))
}

// dialEtcd opens a channel to the service through etcd's own resolver.
func dialEtcd(t *testing.T, c *clientv3.Client) *link {
	t.Helper()
	b, err := etcdresolver.NewBuilder(c)
	require.NoError(t, err)
	return dialTarget(t, "etcd:///"+etcdService, grpc.WithResolvers(b))
}

// TestD68EtcdSeesAScaleOut: a third endpoint is registered and takes the next
// streams until it is level. One that is deleted gets no more, and its streams
// live on.
func TestD68EtcdSeesAScaleOut(t *testing.T) {
	c := startEtcd(t).client()
	ns, r := startNodes(t, "a", "b", "c"), newRegistry(t, c)
	r.add(ns[:2]...)
	l := dialEtcd(t, c)
	l.waitUsable(ns[:2]...)
	streams, by := l.hold(6)
	require.Equal(t, map[string]int{"a": 3, "b": 3}, by)

	r.add(ns[2])
	l.waitUsable(ns[2])
	more, by := l.hold(3)
	require.Equal(t, map[string]int{"c": 3}, by)
	streams = append(streams, more...)
	more, by = l.hold(3)
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, by)
	streams = append(streams, more...)
	l.alive(streams)
	for _, n := range ns {
		require.Equal(t, 1, n.Conns(), "connections to %s so far", n.Name())
	}

	r.remove(ns[0])
	wait(t, "a is not used", func() bool { return !l.usable(ns[0]) })
	more, by = l.hold(4)
	require.Equal(t, map[string]int{"b": 2, "c": 2}, by)
	l.alive(append(streams, more...))
	require.Equal(t, 4, ns[0].HeldStreams())
	require.Equal(t, []int{4, 6, 6}, l.inFlight(ns...))

	// Registered again, it is known with the streams that it has kept.
	r.add(ns[0])
	l.waitUsable(ns[0])
	_, by = l.hold(2)
	require.Equal(t, map[string]int{"a": 2}, by)
	require.Equal(t, []int{6, 6, 6}, l.inFlight(ns...))
}

// TestEtcdOutage: etcd is killed and comes back. Meanwhile the last list holds:
// no RPC fails, no count changes but by RPCs. What is registered then is seen.
func TestEtcdOutage(t *testing.T) {
	e := startEtcd(t)
	c := e.client()
	ns, r := startNodes(t, "a", "b", "c"), newRegistry(t, c)
	r.add(ns[:2]...)
	l := dialEtcd(t, c)
	l.waitUsable(ns[:2]...)
	streams, by := l.hold(6)
	require.Equal(t, map[string]int{"a": 3, "b": 3}, by)

	calls := callAllTheTime(l)
	e.stop()
	calls.waitMore(100)
	require.NoError(t, calls.end())
	more, by := l.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	streams = append(streams, more...)

	calls = callAllTheTime(l)
	e.start()
	calls.waitMore(100)
	require.NoError(t, calls.end())
	require.Equal(t, []int{5, 5, 0}, l.inFlight(ns...))

	r.add(ns[2])
	l.waitUsable(ns[2])
	more, by = l.hold(5)
	require.Equal(t, map[string]int{"c": 5}, by)
	l.alive(append(streams, more...))
	for _, n := range ns {
		require.Equal(t, 1, n.Conns(), "connections to %s so far", n.Name())
	}
}

// calls are unary RPCs, one after another.
type calls struct {
	t       *testing.T
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	made int
	err  error // the first one
}

// callAllTheTime makes calls until end or the end of the test.
func callAllTheTime(l *link) *calls {
	ctx, cancel := context.WithCancel(l.t.Context())
	c := &calls{t: l.t, cancel: cancel}
	c.running.Go(func() {
		for ctx.Err() == nil {
			_, err := l.unary()
			c.mu.Lock()
			c.made++
			if c.err == nil && ctx.Err() == nil {
				c.err = err
			}
			c.mu.Unlock()
		}
	})
	l.t.Cleanup(func() { c.end() })
	return c
}

func (c *calls) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

// waitMore waits until n more calls have ended.
func (c *calls) waitMore(n int) {
	c.t.Helper()
	until := c.count() + n
	wait(c.t, "more calls", func() bool { return c.count() >= until })
}

// end lets the last call end and returns the first error.
func (c *calls) end() error {
	c.cancel()
	c.running.Wait()
	return c.err
}

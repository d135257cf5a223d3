package leastconnbalancer_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// partings are ways in which the connection to node a is given up.
var partings = map[string]func(c *channel, a, b *leastconntest.Node){
	"the endpoint leaves": func(c *channel, a, b *leastconntest.Node) { c.update(b) },
	"the endpoint gets another address": func(c *channel, a, b *leastconntest.Node) {
		require.NoError(c.env, c.Update(lcresolver.SetID(b.Endpoint(), "pod")))
		c.waitReady(b)
	},
	"the endpoint loses one of two addresses": func(c *channel, a, b *leastconntest.Node) {
		require.NoError(c.env, c.Update(lcresolver.SetID(both(a, b), "pod")))
		require.NoError(c.env, c.Update(lcresolver.SetID(b.Endpoint(), "pod")))
		c.waitReady(b)
	},
	"the endpoint leaves, returns and leaves": func(c *channel, a, b *leastconntest.Node) {
		for range 3 {
			c.update(b)
			require.NoError(c.env, c.Update(lcresolver.SetID(a.Endpoint(), "pod")))
			c.waitReady(a)
			c.hold(1)
		}
		c.update(b)
	},
	"the list is empty for a moment": func(c *channel, a, b *leastconntest.Node) {
		require.ErrorIs(c.env, c.Update(), balancer.ErrBadResolverState)
		c.update(b)
	},
}

// both is one endpoint with the addresses of two nodes.
func both(a, b *leastconntest.Node) resolver.Endpoint {
	return resolver.Endpoint{Addresses: append(a.Endpoint().Addresses, b.Endpoint().Addresses...)}
}

// dialPod is a channel to node a as an endpoint with an id.
func (e *env) dialPod(a *leastconntest.Node) *channel {
	return e.dialWith(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{lcresolver.SetID(a.Endpoint(), "pod")}}, a)
}

// However a connection is given up, the RPCs that have picked it get their streams
// there, and it goes with the last of them.
func TestNoRPCHangsBetweenPickAndStream(t *testing.T) {
	for name, part := range partings {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			ns := e.nodes("a", "b")
			c := e.dialWith(guarded(leastconnbalancer.Config{StreamLimit: leastconnbalancer.StreamLimitIgnore}))
			require.NoError(t, c.Update(lcresolver.SetID(ns[0].Endpoint(), "pod")))
			held, _ := c.hold(2)
			creds := slowCreds{make(chan struct{}), make(chan struct{})}
			rpc := e.async(func() (string, error) { return c.Unary(e.ctx, grpc.PerRPCCredentials(creds)) })
			<-creds.asked
			part(c, ns[0], ns[1])
			creds.answer <- struct{}{}
			require.Equal(t, result{node: "a"}, <-rpc)
			require.NoError(t, leastconntest.PingAll(held))
			require.Equal(t, "b", c.unary())
			open := ns[0].OpenConns()
			require.NoError(t, leastconntest.EndAll(held))
			e.wait("the connection is closed", func() bool { return ns[0].OpenConns() == open-1 })
		})
	}
}

// An RPC that waits for the server's MAX_CONCURRENT_STREAMS gets its stream when
// another one of the connection ends.
func TestNoRPCHangsForAStream(t *testing.T) {
	for name, part := range partings {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			ns := []*leastconntest.Node{e.node("a", grpc.MaxConcurrentStreams(2)), e.nodes("b")[0]}
			c := e.dialWith(guarded(leastconnbalancer.Config{StreamLimit: leastconnbalancer.StreamLimitIgnore}))
			require.NoError(t, c.Update(lcresolver.SetID(ns[0].Endpoint(), "pod")))
			held, _ := c.hold(2)
			rpc := e.async(func() (string, error) { return c.Unary(e.ctx) })
			e.wait("the RPC has picked", func() bool { n, _ := c.inFlight(ns[0]); return n == 3 })
			part(c, ns[0], ns[1])
			require.NoError(t, held[0].End())
			require.Equal(t, result{node: "a"}, <-rpc)
			require.NoError(t, held[1].End())
		})
	}
}

// An RPC on its way does not keep a connection that breaks or is drained: it finds
// another, or fails as gRPC has it, and nobody connects anew for it.
func TestClosingConnectionThatBreaks(t *testing.T) {
	for name, lose := range map[string]func(*leastconntest.Node){
		"goaway": (*leastconntest.Node).GoAway, "stop": (*leastconntest.Node).Stop,
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			ns := e.nodes("a", "b")
			c := e.dialPod(ns[0])
			creds := slowCreds{make(chan struct{}, 2), make(chan struct{})}
			rpc := e.async(func() (string, error) { return c.Unary(e.ctx, grpc.PerRPCCredentials(creds)) })
			<-creds.asked
			c.update(ns[1])
			conns := ns[0].Conns()
			lose(ns[0])
			e.wait("the connection is closed", func() bool { return ns[0].OpenConns() == 0 })
			close(creds.answer)
			if got := <-rpc; name == "goaway" || got.err == nil {
				require.Equal(t, result{node: "b"}, got)
			}
			require.Equal(t, conns, ns[0].Conns())
		})
	}
}

// The health stream ends when the endpoint leaves, not with the RPCs there.
func TestHealthStreamEndsBeforeTheConnection(t *testing.T) {
	e := newEnv(t)
	var watches atomic.Int64
	watched := grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		if info.FullMethod == grpc_health_v1.Health_Watch_FullMethodName {
			watches.Add(1)
			defer watches.Add(-1)
		}
		return handle(srv, s)
	})
	a := e.node("a", watched)
	b := e.nodes("b")[0]
	c := e.dialWith(leastconntest.ChannelConfig{Endpoints: leastconntest.Endpoints(a), ServiceConfig: strings.Replace(withoutPenalty, "}]", `}],"healthCheckConfig":{"serviceName":""}`, 1)}, a)
	held, _ := c.hold(1)
	require.EqualValues(t, 1, watches.Load())
	c.update(b)
	e.wait("the health stream is over", func() bool { return watches.Load() == 0 })
	require.NoError(t, leastconntest.PingAll(held))
	require.Equal(t, 1, a.OpenConns())
}

// shutdownConn is a channel that counts how often its SubConns are shut down.
type shutdownConn struct {
	*fakeConn
	shutdowns map[string]*atomic.Int64
}

type shutdownSubConn struct {
	*fakeSubConn
	shutdowns *atomic.Int64
}

func (s *shutdownSubConn) Shutdown() { s.shutdowns.Add(1) }

func (c *shutdownConn) NewSubConn(addrs []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	sc, err := c.fakeConn.NewSubConn(addrs, opts)
	c.shutdowns[addrs[0].Addr] = &atomic.Int64{}
	return &shutdownSubConn{sc.(*fakeSubConn), c.shutdowns[addrs[0].Addr]}, err
}

// newShutdownConn lists endpoint a, which is ready.
func newShutdownConn(t *testing.T) *shutdownConn {
	c := &shutdownConn{newFakeConn(t), map[string]*atomic.Int64{}}
	c.balancer = balancer.Get(leastconnbalancer.Name).Build(c, balancer.BuildOptions{})
	t.Cleanup(c.balancer.Close)
	c.list(`{}`, "a")
	c.connect("a")
	return c
}

// pick returns the Done of a pick of a, whose SubConn must be the channel's own.
func (c *shutdownConn) pick() func(balancer.DoneInfo) {
	res, err := c.picker().Pick(balancer.PickInfo{Ctx: context.Background()})
	require.NoError(c.tb, err)
	require.IsType(c.tb, &shutdownSubConn{}, res.SubConn)
	return res.Done
}

// A SubConn is shut down once: when its transport has no RPC, or is not READY any more,
// whichever comes first; and so after the policy was closed. An RPC of a transport before
// does not keep the next one.
func TestSubConnIsShutDownOnce(t *testing.T) {
	type step struct {
		do   func(c *shutdownConn, done func(balancer.DoneInfo))
		want int64
	}
	leave := func(want int64) step {
		return step{func(c *shutdownConn, _ func(balancer.DoneInfo)) { c.list(`{}`, "b") }, want}
	}
	done := func(want int64) step {
		return step{func(_ *shutdownConn, done func(balancer.DoneInfo)) { done(balancer.DoneInfo{}) }, want}
	}
	state := func(s connectivity.State, want int64) step {
		return step{func(c *shutdownConn, _ func(balancer.DoneInfo)) { c.report("a", s) }, want}
	}
	quit := func(want int64) step {
		return step{func(c *shutdownConn, _ func(balancer.DoneInfo)) { c.balancer.Close() }, want}
	}
	for name, steps := range map[string][]step{
		"done, then leaves":         {done(0), leave(1), done(1)},
		"leaves, then done":         {leave(0), done(1), done(1), quit(1)},
		"leaves, then breaks":       {leave(0), state(connectivity.Idle, 1), done(1), quit(1)},
		"leaves, closes, then done": {leave(0), quit(0), done(1), quit(1)},
		"closes, then done":         {quit(0), done(1)},
		"closes, then breaks":       {quit(0), state(connectivity.Idle, 1), done(1)},
		"leaves, shut down, breaks": {leave(0), done(1), state(connectivity.Shutdown, 1)},
		"breaks, then leaves":       {state(connectivity.Idle, 0), leave(1), done(1)},
		"ready again, then leaves":  {state(connectivity.Idle, 0), state(connectivity.Connecting, 0), state(connectivity.Ready, 0), leave(1), done(1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newShutdownConn(t)
				rpc := c.pick()
				for i, s := range steps {
					s.do(c, rpc)
					synctest.Wait()
					require.Equal(t, s.want, c.shutdowns["a"].Load(), "step %d", i)
				}
			})
		})
	}
}

// RPCs begin and end while the only endpoint moves from node to node: none fails,
// none hangs, and no connection stays.
func TestConnectionsMoveUnderLoad(t *testing.T) {
	e := newEnv(t)
	ns := e.nodes("a", "b", "c")
	c := e.dialPod(ns[0])
	callers := c.callers(4)
	for i := range 60 {
		n := ns[(i+1)%len(ns)]
		require.NoError(t, c.Update(lcresolver.SetID(n.Endpoint(), "pod")))
		callers.goOn()
	}
	callers.stop()
	e.wait("one connection is left", func() bool { return ns[0].OpenConns()+ns[1].OpenConns()+ns[2].OpenConns() == 1 })
}

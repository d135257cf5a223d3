package leastconnbalancer_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// rpcs are ways to make an RPC.
var rpcs = map[string]func(*channel, context.Context) error{
	"unary": func(c *channel, ctx context.Context) error {
		_, err := c.Unary(ctx)
		return err
	},
	"stream": func(c *channel, ctx context.Context) error {
		s, err := c.Open(ctx)
		if err == nil {
			err = s.End()
		}
		return err
	},
}

// sameEnd checks that the attempts of each RPC, so many, share a Done channel that
// is no other RPC's and is closed by now. This is how the policy knows the attempts
// of an RPC without being told. gRPC does not promise it.
func (p *recordingPolicy) sameEnd(e *env, rpcs, attempts int) {
	e.Helper()
	ends := map[any]<-chan struct{}{}
	counts := map[any]int{}
	owners := map[<-chan struct{}]any{e.ctx.Done(): "the parent of all"}
	for _, pick := range p.recorded() {
		if pick.rpc == nil {
			continue
		}
		if counts[pick.rpc]++; counts[pick.rpc] == 1 {
			require.NotNil(e, pick.ends)
			require.NotContains(e, owners, pick.ends, "RPC %v", pick.rpc)
			ends[pick.rpc], owners[pick.ends] = pick.ends, pick.rpc
		}
		require.Equal(e, ends[pick.rpc], pick.ends, "attempts of RPC %v", pick.rpc)
	}
	require.Len(e, counts, rpcs, "RPCs")
	for rpc, n := range counts {
		require.Equal(e, attempts, n, "attempts of RPC %v", rpc)
		<-ends[rpc]
	}
}

func TestAttemptsShareADoneChannel(t *testing.T) {
	t.Parallel()
	for kind, rpc := range rpcs {
		t.Run(kind, func(t *testing.T) {
			e := parallelEnv(t)
			ns := e.nodes("a", "b", "c")
			failing(ns...)
			p := &recordingPolicy{}
			c := e.dialRecorded(p, retrying(4), ns...)
			var callers sync.WaitGroup
			for i := range 20 {
				callers.Go(func() { _ = rpc(c, withRPC(e.ctx, i)) })
			}
			callers.Wait()
			p.sameEnd(e, 20, 4)
		})
	}
}

// A retry that gRPC makes by itself goes elsewhere, too: it makes only one.
func TestTransparentRetryGoesElsewhere(t *testing.T) {
	t.Parallel()
	rounds := map[string]int64{"REFUSED_STREAM": 10, "GOAWAY": 2} // more connections come after long pauses
	for name, refuse := range map[string]func(uint32) []byte{"REFUSED_STREAM": refusedStream, "GOAWAY": goAway} {
		for kind, rpc := range rpcs {
			t.Run(name+", "+kind, func(t *testing.T) {
				e := parallelEnv(t)
				r, b := e.refusingServer(refuse, kind == "unary"), e.nodes("b")[0]
				p := &recordingPolicy{}
				c := e.dialRecorded(p, quickly(), b)
				held, _ := c.hold(1)
				require.NoError(t, c.Update(b.Endpoint(), r.endpoint()))
				for i := range rounds[name] {
					e.wait("the refusing server is ready", func() bool {
						return c.readyAt(r.endpoint()) && (name == "REFUSED_STREAM" || r.conns.Load() == i+1)
					})
					require.NoError(t, rpc(c, withRPC(e.ctx, i)))
					require.Equal(t, i+1, r.streams.Load(), "streams at the refusing server")
				}
				p.sameEnd(e, int(rounds[name]), 2)
				require.NoError(t, leastconntest.PingAll(held))
				require.Equal(t, 0, c.inFlightAt(r.endpoint()))
				require.Equal(t, 1, c.inFlightAt(b.Endpoint()))
			})
		}
	}
}

// sending opens a stream and sends on it until something has come of the first
// attempt, of which gRPC tells the policy nothing: it sees the failure as it sends.
func (c *channel) sending(p *recordingPolicy, failed func() bool) grpc_testing.TestService_FullDuplexCallClient {
	c.env.Helper()
	picks := len(p.recorded())
	ctx, cancel := context.WithCancel(c.env.ctx)
	c.env.Cleanup(cancel)
	s, err := c.Client().FullDuplexCall(ctx)
	require.NoError(c.env, err)
	c.env.wait("the first attempt has failed", failed)
	c.env.wait("a retry", func() bool {
		_ = s.Send(&grpc_testing.StreamingOutputCallRequest{}) // fails once there are too many
		return len(p.recorded()) > picks+1
	})
	require.NoError(c.env, p.recorded()[picks].done.Err, "what sending saw")
	return s
}

// An attempt of which nothing came back, not even a header, has failed, whatever
// gRPC says of its end; one of which a header came is told apart by the interceptor
// alone.
func TestRetryThatSendingBegan(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config leastconntest.ChannelConfig
		again  bool // at a
	}{
		"without the interceptor": {retrying(4), true},
		"with the interceptor":    {intercepted(retrying(4)), false},
	} {
		t.Run(name, func(t *testing.T) {
			e := parallelEnv(t)
			ns := e.nodes("a", "b")
			p := &recordingPolicy{}
			c := e.dialRecorded(p, tt.config, ns...)
			c.load(ns, 0, 1)
			before := started(ns)
			failing(ns[0])
			c.sending(p, func() bool { return ns[0].Started() == before[0]+1 && ns[0].Live() == 0 })
			again := func() bool { return started(ns, before...)[0] > 1 }
			e.wait("the second attempt", func() bool { return again() || ns[1].Started() > before[1] })
			require.Equal(t, tt.again, again(), "attempts by node: %v", started(ns, before...))
		})
	}
	t.Run("nothing came back", func(t *testing.T) {
		e := parallelEnv(t)
		r, b := e.refusingServer(refusedStream, false), e.nodes("b")[0]
		p := &recordingPolicy{}
		c := e.dialRecorded(p, leastconntest.ChannelConfig{}, b)
		c.hold(1)
		require.NoError(t, c.Update(b.Endpoint(), r.endpoint()))
		e.wait("the refusing server is ready", func() bool { return c.readyAt(r.endpoint()) })
		s := c.sending(p, func() bool { return r.streams.Load() > 0 })
		_, err := s.Recv()
		require.NoError(t, err)
		require.EqualValues(t, 1, r.streams.Load(), "streams at the refusing server")
	})
}

// persistent is retry middleware: each of its tries is an RPC to gRPC.
func persistent(tries int) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) (err error) {
		for range tries {
			if err = invoker(ctx, method, req, reply, cc, opts...); err == nil {
				break
			}
		}
		return err
	}
}

// With the interceptors what middleware makes of an RPC, and gRPC of that, are
// attempts of the same RPC; another RPC is none, whatever their contexts share.
func TestRetryMiddlewareGoesElsewhere(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]leastconntest.ChannelConfig{
		"middleware": intercepted(quickly(), persistent(4)), "and gRPC": intercepted(retrying(2), persistent(2)),
	} {
		t.Run(name, func(t *testing.T) {
			e := parallelEnv(t)
			ns := e.nodes("a", "b", "c", "d")
			c := e.dialWith(cfg, ns...)
			c.load(ns, 0, 1, 2, 3)
			require.Equal(t, map[string]int{"a": 5}, tally(c.calls(5)))
			for range 5 {
				s, by := c.hold(1)
				require.Equal(t, map[string]int{"a": 1}, by)
				s[0].Cancel()
			}
			failing(ns[:3]...)
			before := started(ns)
			require.Equal(t, "d", c.unary())
			require.Equal(t, []int{1, 1, 1, 1}, started(ns, before...), "attempts by node")
			c.counts(ns, 0, 1, 2, 3)
		})
	}
}

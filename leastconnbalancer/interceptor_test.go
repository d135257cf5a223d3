package leastconnbalancer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// intercepted adds the policy's interceptors, with a user's own inside.
func intercepted(cfg leastconntest.ChannelConfig, inside ...grpc.UnaryClientInterceptor) leastconntest.ChannelConfig {
	unary := append([]grpc.UnaryClientInterceptor{leastconnbalancer.UnaryClientInterceptor()}, inside...)
	cfg.DialOptions = append(cfg.DialOptions,
		grpc.WithChainUnaryInterceptor(unary...),
		grpc.WithChainStreamInterceptor(leastconnbalancer.StreamClientInterceptor()))
	return cfg
}

// A failure that gRPC sees while it sends is not told to the policy; with the
// interceptor the retry goes elsewhere all the same.
func TestRetryThatSendingBegan(t *testing.T) {
	for name, tc := range map[string]struct {
		config leastconntest.ChannelConfig
		again  bool // at a
	}{
		"without the interceptor": {retrying(4), true},
		"with the interceptor":    {intercepted(retrying(4)), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b")
			tp := &tap{}
			c := l.dialTapped(tp, tc.config, ns...)
			c.load(ns, 0, 1)
			before, picks := started(ns), len(tp.picks())
			failing(ns[0])
			ctx, cancel := context.WithCancel(l.ctx)
			defer cancel()
			s, err := c.Client().FullDuplexCall(ctx)
			require.NoError(t, err)
			l.wait("a has failed the stream", func() bool { return ns[0].Started() == before[0]+1 && ns[0].Live() == 0 })
			l.wait("a retry", func() bool {
				_ = s.Send(&grpc_testing.StreamingOutputCallRequest{}) // fails once there are too many
				return len(tp.picks()) > picks+1
			})
			require.NoError(t, tp.picks()[picks].done.Err, "what sending saw")
			again := func() bool { return started(ns, before...)[0] > 1 }
			l.wait("the second attempt", func() bool { return again() || ns[1].Started() > before[1] })
			require.Equal(t, tc.again, again(), "attempts by node: %v", started(ns, before...))
			cancel()
			for err = nil; err == nil; {
				_, err = s.Recv()
			}
		})
	}
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

func TestRetryMiddlewareGoesElsewhere(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	cfg := intercepted(leastconntest.ChannelConfig{ServiceConfig: withoutPenalty}, persistent(5))
	c := l.dialTapped(&tap{}, cfg, ns...)
	c.load(ns, 0, 1, 2)
	failing(ns[:2]...)
	for range 10 {
		before := started(ns)
		require.Equal(t, "c", c.unary())
		require.Equal(t, []int{1, 1, 1}, started(ns, before...), "attempts by node")
	}
	failing(ns[2])
	before := started(ns)
	c.failed()
	require.Equal(t, []int{2, 2, 1}, started(ns, before...), "attempts by node")
	c.counts(ns, 0, 1, 2)
}

// Configured retries inside middleware are attempts of the same RPC.
func TestRetriesInsideMiddlewareGoElsewhere(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	c := l.dialTapped(&tap{}, intercepted(retrying(2), persistent(2)), ns...)
	c.load(ns, 0, 1, 2, 3)
	failing(ns[:3]...)
	before := started(ns)
	require.Equal(t, "d", c.unary())
	require.Equal(t, []int{1, 1, 1, 1}, started(ns, before...), "attempts by node")
}

// An RPC is not an attempt of the one before it, whatever their contexts share.
func TestInterceptedRPCsAreApart(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialTapped(&tap{}, intercepted(leastconntest.ChannelConfig{}), ns...)
	c.load(ns, 0, 1)
	require.Equal(t, map[string]int{"a": 10}, tally(c.calls(10)))
	for range 10 {
		s, by := c.hold(1)
		require.Equal(t, map[string]int{"a": 1}, by)
		s[0].Cancel()
	}
}

// An application may keep a finished stream, which keeps its context.
func TestFinishedInterceptedStreamHoldsNoLedger(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialTapped(&tap{}, intercepted(leastconntest.ChannelConfig{}), ns...)
	ledger := c.ledger()
	kept, _ := c.hold(4)
	require.NoError(t, leastconntest.EndAll(kept))
	require.NoError(t, c.Close())
	l.collected(ledger)
	require.Len(t, kept, 4)
}

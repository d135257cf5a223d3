package leastconnbalancer_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// oneEnd checks that the attempts of each RPC, so many, share a Done channel
// that is no other RPC's and is closed by now.
func (t *tap) oneEnd(l *lab, rpcs, attempts int) {
	l.Helper()
	ends := map[any]<-chan struct{}{}
	counts := map[any]int{}
	owners := map[<-chan struct{}]any{l.ctx.Done(): "the parent of all"}
	for _, p := range t.picks() {
		if p.rpc == nil {
			continue
		}
		if counts[p.rpc]++; counts[p.rpc] == 1 {
			require.NotNil(l, p.ends)
			require.NotContains(l, owners, p.ends, "RPC %v", p.rpc)
			ends[p.rpc], owners[p.ends] = p.ends, p.rpc
		}
		require.Equal(l, ends[p.rpc], p.ends, "attempts of RPC %v", p.rpc)
	}
	require.Len(l, counts, rpcs, "RPCs")
	for rpc, n := range counts {
		require.Equal(l, attempts, n, "attempts of RPC %v", rpc)
		<-ends[rpc]
	}
}

// This is how the policy knows the attempts of an RPC without being told. gRPC
// does not promise it.
func TestAttemptsShareADoneChannel(t *testing.T) {
	rpcs := map[string]func(*channel, context.Context) error{
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
	for kind, rpc := range rpcs {
		t.Run("configured retries, "+kind, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b", "c")
			failing(ns...)
			tp := &tap{}
			c := l.dialTapped(tp, retrying(4), ns...)
			var callers sync.WaitGroup
			for i := range 20 {
				callers.Go(func() { _ = rpc(c, withRPC(l.ctx, i)) })
			}
			callers.Wait()
			tp.oneEnd(l, 20, 4)
		})
		t.Run("transparent retries, "+kind, func(t *testing.T) {
			l := newLab(t)
			r, b := l.refuser(refusedStream, kind == "unary"), l.nodes("b")[0]
			tp := &tap{}
			c := l.dialTapped(tp, leastconntest.ChannelConfig{ServiceConfig: withoutPenalty}, b)
			c.hold(1)
			require.NoError(t, c.Update(b.Endpoint(), r.endpoint()))
			l.wait("the refuser is ready", func() bool { return c.readyAt(r.endpoint()) })
			for i := range 20 {
				require.NoError(t, rpc(c, withRPC(l.ctx, i)))
			}
			tp.oneEnd(l, 20, 2)
		})
	}
}

// An attempt of which nothing came back, not even a header, has failed, whatever
// gRPC says of its end: also without the interceptor its retry goes elsewhere.
func TestTransparentRetryThatSendingBegan(t *testing.T) {
	l := newLab(t)
	r, b := l.refuser(refusedStream, false), l.nodes("b")[0]
	tp := &tap{}
	c := l.dialTapped(tp, leastconntest.ChannelConfig{}, b)
	c.hold(1)
	require.NoError(t, c.Update(b.Endpoint(), r.endpoint()))
	l.wait("the refuser is ready", func() bool { return c.readyAt(r.endpoint()) })
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	s, err := c.Client().FullDuplexCall(ctx)
	require.NoError(t, err)
	l.wait("a retry", func() bool {
		_ = s.Send(&grpc_testing.StreamingOutputCallRequest{})
		return len(tp.picks()) == 3
	})
	first := tp.picks()[1].done
	require.NoError(t, first.Err, "what sending saw")
	require.Equal(t, []bool{true, false}, []bool{first.BytesSent, first.BytesReceived})
	_, err = s.Recv()
	require.NoError(t, err, "%d streams at the refuser", r.streams.Load())
	require.EqualValues(t, 1, r.streams.Load(), "streams at the refuser")
}

// What an RPC has tried is forgotten with it, and pins nothing.
func TestRecordsGoWithTheirRPCs(t *testing.T) {
	for name, cfg := range map[string]leastconntest.ChannelConfig{
		"without the interceptors": retrying(3),
		"with the interceptors":    intercepted(retrying(3)),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b", "c")
			failing(ns[:2]...)
			c := l.dialTapped(&tap{}, cfg, ns...)
			ledger := c.ledger()
			c.load(ns[2:], 1)[0].Cancel()
			for range 20 {
				require.Equal(t, "c", c.unary())
				s, err := c.Open(l.ctx)
				require.NoError(t, err)
				s.Cancel()
			}
			failing(ns...)
			for range 20 {
				c.failed()
				_, err := c.Open(l.ctx)
				require.Equal(t, codes.Unavailable, status.Code(err))
			}
			require.NoError(t, c.Close())
			l.collected(ledger)
		})
	}
}

package leastconnbalancer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// quickly makes a channel try again at once to connect.
func quickly() leastconntest.ChannelConfig {
	return leastconntest.ChannelConfig{ServiceConfig: withoutPenalty, DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond},
		MinConnectTimeout: 5 * time.Second,
	})}}
}

// valid is a check for watch that asks for the invariants alone.
func valid(state.Snapshot) error { return nil }

// A server stream is in flight until the client has read its end or cancels.
func TestD16StreamNotReadToItsEnd(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns[0])
	ctx, cancel := context.WithCancel(l.ctx)
	for range 6 {
		s, err := c.Client().StreamingOutputCall(ctx, &grpc_testing.StreamingOutputCallRequest{})
		require.NoError(t, err)
		_, err = s.Recv()
		require.NoError(t, err)
	}
	ns[0].EndStreams()
	l.served(ns, 0, 0)
	c.counts(ns, 6, 0)
	c.update(ns...)
	for range 6 {
		require.Equal(t, "b", c.unary())
	}
	cancel()
	l.wait("the streams are released", func() bool { return c.snapshot().InFlight == 0 })
	c.counts(ns, 0, 0)
}

// A pick whose connection is lost before it is used is given back.
func TestD17ConnectionLostAfterPick(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	p := &parent{}
	c := l.dialParent(p, quickly(), ns...)
	stop := c.watch(valid)
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	var callers sync.WaitGroup
	for range 200 {
		callers.Go(func() {
			for ctx.Err() == nil {
				_, _ = c.Unary(ctx)
			}
		})
	}
	for range 20 {
		ns[1].Stop()
		require.NoError(t, ns[1].Restart())
		before := ns[1].Started()
		l.wait("b is used again", func() bool { return ns[1].Started() > before })
	}
	cancel()
	callers.Wait()
	stop()
	require.Equal(t, p.picks.Load(), p.dones.Load(), "Dones for picks")
	require.Greater(t, p.picks.Load(), int64(200))
	c.counts(ns, 0, 0)
}

func retryConfig(attempts int) string {
	return fmt.Sprintf(`{"loadBalancingConfig":[{"least_conn_parent":{"failurePenalty":"0s"}}],"methodConfig":[{"name":[{}],"retryPolicy":{
		"maxAttempts":%d,"initialBackoff":"0.001s","maxBackoff":"0.001s","backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`, attempts)
}

// Each attempt is one pick, one attempt at a server and one Done, and a second
// call of a Done changes nothing.
func TestD20RetriesReleaseEveryAttempt(t *testing.T) {
	for name, twice := range map[string]bool{"Done once": false, "Done twice": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b")
			ns[0].SetFail(codes.Unavailable)
			p := &parent{twice: twice}
			cfg := quickly()
			cfg.ServiceConfig = retryConfig(4)
			c := l.dialParent(p, cfg, ns...)
			stop := c.watch(valid)
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() {
					for range 25 {
						_, err := c.Unary(l.ctx)
						assert.NoError(t, err)
					}
				})
			}
			callers.Wait()
			stop()
			attempts := int64(ns[0].Started() + ns[1].Started())
			require.Greater(t, attempts, int64(200), "some attempts were retried")
			require.Equal(t, attempts, p.picks.Load(), "picks")
			require.Equal(t, attempts, p.dones.Load(), "Dones")
			c.counts(ns, 0, 0)
		})
	}
}

// More retries than nodes: a node is tried again rather than none, and a single
// node is retried, since it is the only one there is.
func TestMoreRetriesThanNodes(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		t.Run(fmt.Sprint(names), func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes(names...)
			for _, n := range ns {
				n.SetFail(codes.Unavailable)
			}
			p := &parent{}
			c := l.dialParent(p, leastconntest.ChannelConfig{ServiceConfig: retryConfig(5)}, ns...)
			_, err := c.Unary(l.ctx)
			require.Equal(t, codes.Unavailable, status.Code(err))
			started := 0
			for _, n := range ns {
				started += n.Started()
			}
			require.Equal(t, 5, started)
			require.Equal(t, int64(5), p.dones.Load())
			require.Zero(t, c.snapshot().InFlight)
		})
	}
}

// A Done that is called twice gives back once.
func TestNoDoubleRelease(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	p := &parent{twice: true}
	c := l.dialParent(p, leastconntest.ChannelConfig{}, ns...)
	streams, _ := c.hold(6)
	for range 10 {
		require.Contains(t, []string{"a", "b"}, c.unary())
		c.counts(ns, 3, 3)
	}
	require.NoError(t, streams[0].End())
	require.EqualValues(t, 5, c.snapshot().InFlight)
	require.NoError(t, leastconntest.EndAll(streams[1:]))
	c.counts(ns, 0, 0)
}

// Choosing and counting are one step: a burst is spread evenly.
func TestD22BurstFromOneBarrier(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	c := l.dial(ns...)
	streams, err := c.OpenTogether(l.ctx, 1000)
	require.NoError(t, err)
	c.counts(ns, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100)
	l.served(ns, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100)
	require.NoError(t, leastconntest.EndAll(streams))
	c.counts(ns, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
}

// Resolver errors after a good list change nothing.
func TestD24ResolverErrorAfterList(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialParent(&parent{rude: true}, leastconntest.ChannelConfig{}, ns...)
	streams, _ := c.hold(2)
	for range 3 {
		c.ReportError(errResolver)
		require.Contains(t, []string{"a", "b"}, c.unary())
		c.counts(ns, 1, 1)
	}
	c.Connect()
	require.NoError(t, leastconntest.PingAll(streams))
	l.conns(ns, 1, 1)
	require.NoError(t, c.Close())
	//lint:ignore SA1019 what a second Close returns
	require.ErrorIs(t, c.Close(), grpc.ErrClientConnClosing)
	for _, s := range streams {
		require.Equal(t, codes.Canceled, status.Code(s.Wait()))
	}
	require.Zero(t, c.snapshot().InFlight)
}

// A resolver error before the first list fails RPCs with its text, whether gRPC
// or a policy above reports it.
func TestD24ResolverErrorBeforeList(t *testing.T) {
	for name, dial := range map[string]func(*lab) *channel{
		"channel": func(l *lab) *channel {
			c := l.unused(leastconntest.ChannelConfig{})
			c.ReportError(errResolver)
			return c
		},
		"parent": func(l *lab) *channel {
			return l.dialParent(&parent{early: true}, leastconntest.ChannelConfig{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a")
			c := dial(l)
			_, err := c.Unary(l.ctx)
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.ErrorContains(t, err, errResolver.Error())
			c.update(ns...)
			require.Equal(t, "a", c.unary())
		})
	}
}

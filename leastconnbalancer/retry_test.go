package leastconnbalancer_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// withoutPenalty selects the policy without its penalty for fresh failures, for
// tests of where attempts go besides.
const withoutPenalty = `{"loadBalancingConfig":[{"least_conn":{"failurePenalty":"0s"}}]}`

// retrying is a channel whose RPCs make up to so many attempts.
func retrying(attempts int) leastconntest.ChannelConfig {
	return leastconntest.ChannelConfig{
		ServiceConfig: retryConfig(attempts),
		DialOptions:   []grpc.DialOption{grpc.WithMaxCallAttempts(attempts)},
	}
}

func failing(nodes ...*leastconntest.Node) {
	for _, n := range nodes {
		n.SetFail(codes.Unavailable)
	}
}

// started is how many attempts the nodes have seen since before.
func started(nodes []*leastconntest.Node, before ...int) []int {
	got := make([]int, len(nodes))
	for i, n := range nodes {
		got[i] = n.Started()
		if before != nil {
			got[i] -= before[i]
		}
	}
	return got
}

// failed makes an RPC that is to fail as the nodes do.
func (c *channel) failed() {
	c.lab.Helper()
	_, err := c.Unary(c.lab.ctx)
	require.Equal(c.lab, codes.Unavailable, status.Code(err), "%v", err)
	require.ErrorContains(c.lab, err, "node fails on request")
}

// Each try goes to the next best node, and once all were tried they are tried
// again, the least loaded first.
func TestEachTryGoesToTheNextBestNode(t *testing.T) {
	for attempts, want := range map[int][]int{
		2: {1, 1, 0, 0},
		3: {1, 1, 1, 0},
		4: {1, 1, 1, 1},
		5: {2, 1, 1, 1},
		7: {2, 2, 2, 1},
		9: {3, 2, 2, 2},
	} {
		t.Run(strconv.Itoa(attempts), func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b", "c", "d")
			p := &parent{}
			c := l.dialParent(p, retrying(attempts), ns...)
			held := c.load(ns, 0, 1, 2, 3)
			before, picks := started(ns), p.picks.Load()
			failing(ns...)
			c.failed()
			require.Equal(t, want, started(ns, before...), "attempts by node")
			require.Equal(t, int64(attempts), p.picks.Load()-picks)
			require.NoError(t, leastconntest.PingAll(held))
			c.counts(ns, 0, 1, 2, 3)
		})
	}
}

// A single node is retried, since it is the only one there is.
func TestSingleNodeIsRetriedUntilItSucceeds(t *testing.T) {
	l := newLab(t)
	var calls atomic.Int64
	n := l.node(leastconntest.Options{Name: "a", ServerOptions: []grpc.ServerOption{grpc.ChainUnaryInterceptor(
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if calls.Add(1)%4 != 0 {
				return nil, status.Error(codes.Unavailable, "three of four fail")
			}
			return handler(ctx, req)
		})}})
	p := &parent{}
	c := l.dialParent(p, retrying(4), n)
	require.Equal(t, map[string]int{"a": 10}, tally(c.calls(10)))
	require.Equal(t, 40, n.Started())
	require.Equal(t, int64(40), p.dones.Load())
	c.counts([]*leastconntest.Node{n}, 0)
}

// An RPC that runs out of nodes gives each of its attempts back once: what the
// nodes hold besides stays as it is.
func TestRunsOutOfServersReleasesOnce(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	p := &parent{}
	c := l.dialParent(p, retrying(4), ns...)
	held, _ := c.hold(4)
	picks := p.picks.Load()
	stop := c.watch(valid)
	failing(ns...)
	for i := range 10 {
		c.failed()
		c.counts(ns, 2, 2)
		require.Equal(t, int64(4*(i+1)), p.picks.Load()-picks)
		require.Equal(t, int64(4*(i+1)), p.dones.Load())
	}
	stop()
	require.NoError(t, leastconntest.EndAll(held))
	c.counts(ns, 0, 0)
}

func TestD50RetryGoesElsewhere(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	p := &parent{}
	c := l.dialParent(p, retrying(4), ns...)
	c.load(ns, 0, 1)
	before := started(ns)
	failing(ns[0])
	require.Equal(t, map[string]int{"b": 100}, tally(c.calls(100)))
	got := started(ns, before...)
	require.LessOrEqual(t, got[0], 100, "attempts at a")
	require.Positive(t, got[0], "attempts at a")
	c.counts(ns, 0, 1)
}

// A retry stays on the level as long as a node is left there, then it goes on
// to the next one.
func TestRetryPrefersItsLevel(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d", "e")
	cfg := retrying(6)
	for i, n := range ns {
		cfg.Endpoints = append(cfg.Endpoints, lcresolver.SetPriority(n.Endpoint(), []uint32{0, 0, 0, 1, 2}[i]))
	}
	c := l.dialParent(&parent{}, cfg, ns...)
	c.load(ns[:3], 0, 1, 2)
	for healthy := len(ns); healthy >= 0; healthy-- {
		for i, n := range ns {
			n.SetFail(codes.OK)
			if i < healthy {
				n.SetFail(codes.Unavailable)
			}
		}
		before := started(ns)
		want := []int{1, 1, 1, 1, 1}
		if healthy == len(ns) {
			c.failed()
			want[0]++ // all were tried
		} else {
			require.Equal(t, ns[healthy].Name(), c.unary())
			clear(want[healthy+1:])
		}
		require.Equal(t, want, started(ns, before...), "with %d failing", healthy)
	}
	c.counts(ns, 0, 1, 2, 0, 0)
}

// A retry that gRPC makes by itself goes elsewhere, too: it makes only one.
func TestTransparentRetryGoesElsewhere(t *testing.T) {
	rounds := map[string]int64{"REFUSED_STREAM": 20, "GOAWAY": 3} // further connections come after long pauses
	for name, refuse := range map[string]func(uint32) []byte{"REFUSED_STREAM": refusedStream, "GOAWAY": goAway} {
		for kind, late := range map[string]bool{"unary": true, "stream": false} {
			t.Run(name+", "+kind, func(t *testing.T) {
				l := newLab(t)
				r, b := l.refuser(refuse, late), l.nodes("b")[0]
				c := l.dialWith(leastconntest.ChannelConfig{ServiceConfig: withoutPenalty}, b)
				held, _ := c.hold(1)
				require.NoError(t, c.Update(b.Endpoint(), r.endpoint()))
				for i := range rounds[name] {
					l.wait("the refuser is ready", func() bool {
						return c.readyAt(r.endpoint()) && (name == "REFUSED_STREAM" || r.conns.Load() == i+1)
					})
					if late {
						require.Equal(t, "b", c.unary())
					} else {
						s, by := c.hold(1)
						require.Equal(t, map[string]int{"b": 1}, by)
						require.NoError(t, s[0].End())
					}
					require.Equal(t, i+1, r.streams.Load(), "streams at the refuser")
				}
				require.NoError(t, leastconntest.PingAll(held))
				require.Equal(t, 0, c.inFlightAt(r.endpoint()))
				require.Equal(t, 1, c.inFlightAt(b.Endpoint()))
			})
		}
	}
}

package leastconnbalancer_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// unaryCalls is how many calls TestUnaryCallsBeyondStreamLimit makes for each of its servers.
var unaryCalls = flag.Int("unary-calls", 4_000, "calls beyond a server's limit of streams; five minutes are some 5,000,000")

// All that wait for a server's limit are seen: on the page, in the metrics and in the ledger; none
// of them is at the server or in a connection.
func TestWaitingForStreamLimitIsSeen(t *testing.T) {
	e := parallelEnv(t)
	n := e.node("a", grpc.MaxConcurrentStreams(100))
	cfg, r := recorded(leastconntest.ChannelConfig{})
	c := e.dialWith(cfg, n)
	opened := make(chan *leastconntest.Stream, 250)
	for range cap(opened) {
		go func() {
			s, err := c.Open(e.ctx)
			if assert.NoError(t, err) {
				opened <- s
			}
		}()
	}
	e.wait("all are in flight or wait", func() bool { s := c.snapshot(); return s.InFlight+s.Waiting == 250 && n.Live() == 100 })
	s := c.snapshot()
	require.EqualValues(t, 100, s.InFlight)
	require.EqualValues(t, 150, s.Waiting)
	require.True(t, c.member(n).Full)
	require.Contains(t, c.page(), "full: server's limit 100")
	require.Contains(t, c.page(), "100 in flight, 150 waiting")
	require.Equal(t, 150, r.value("queue_length"))
	require.Equal(t, 100, r.inFlight()[""])
	require.Equal(t, map[string]int{"picks": 100, "picks_queued": 150}, r.counters())
	for range cap(opened) {
		require.NoError(t, (<-opened).End())
	}
	require.Equal(t, 250, n.Started())
	require.NotContains(t, c.page(), "full")
}

// Room that one call leaves is the next one's, whether the limit stays or changes all the time: no
// call waits for ever, and none is sent beyond a limit that stays.
func TestUnaryCallsBeyondStreamLimit(t *testing.T) {
	for name, limits := range map[string][]uint32{"10": {10}, "changing": {10, 1, 5, 20, 3}} {
		t.Run(name, func(t *testing.T) {
			e := parallelEnv(t)
			var live, most atomic.Int64
			counting := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				n := live.Add(1)
				defer live.Add(-1)
				for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
				}
				return handler(ctx, req)
			}
			n := e.node("a", grpc.ChainUnaryInterceptor(counting))
			n.SetStreamLimit(limits[0])
			c := e.dial(n)
			check := valid
			if len(limits) == 1 {
				check = atMost(int64(limits[0]))
			}
			stop := c.watch(check)
			var calls atomic.Int64
			var workers sync.WaitGroup
			for range 40 {
				workers.Go(func() {
					for i := calls.Add(1); i <= int64(*unaryCalls); i = calls.Add(1) {
						if i%20 == 0 {
							n.SetStreamLimit(limits[int(i/20)%len(limits)])
						}
						ctx, cancel := context.WithTimeout(e.ctx, patience)
						_, err := c.Unary(ctx)
						cancel()
						if !assert.NoError(t, err) {
							return
						}
					}
				})
			}
			workers.Wait()
			stop()
			if len(limits) == 1 {
				require.LessOrEqual(t, most.Load(), int64(limits[0]))
			}
			require.Positive(t, c.snapshot().EndpointSets[0].Queued, "RPCs that waited")
			c.waits(0)
		})
	}
}

// Limits that change while endpoints leave and come back block nothing and lose no RPC: closing a
// connection waits for its reader, which tells the limits.
func TestStreamLimitsChangeWhileEndpointsLeave(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	c := e.dialWith(leastconntest.ChannelConfig{ServiceConfig: withoutPenalty}, ns...)
	callers := c.callers(8)
	stop := c.watch(valid)
	over := make(chan struct{})
	var telling sync.WaitGroup
	for _, n := range ns {
		telling.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(100 * time.Microsecond):
					n.SetStreamLimit(1 + rand.Uint32N(5))
				}
			}
		})
	}
	for range 1000 {
		left := rand.IntN(len(ns))
		require.NoError(t, c.UpdateNodes(append(ns[:left:left], ns[left+1:]...)...))
	}
	close(over)
	telling.Wait()
	for _, n := range ns {
		n.SetStreamLimit(100)
	}
	c.update(ns...)
	callers.goOn()
	callers.stop()
	stop()
	c.waits(0)
}

// RPCs that have picked a connection and have no stream yet when its limit is lowered wait in it,
// are counted there above the limit, and run before any that came later.
func TestLimitLoweredBeforeTheStream(t *testing.T) {
	e := parallelEnv(t)
	n := e.nodes("a")[0]
	n.SetStreamLimit(5)
	c := e.dial(n)
	held, _ := c.hold(2)
	creds := newSlowCreds()
	answer := sync.OnceFunc(func() { close(creds.answer) })
	defer answer()
	var inside []<-chan result
	for range 3 {
		inside = append(inside, e.async(func() (string, error) { return c.Unary(e.ctx, grpc.PerRPCCredentials(creds)) }))
		<-creds.asked
	}
	n.SetStreamLimit(2)
	e.wait("the page shows the limit", func() bool { return strings.Contains(c.page(), "full: server's limit 2") })
	require.NoError(t, held[0].Ping(), "the connection has the limit, too")
	answer()
	later := c.queue(1)
	c.counts([]*leastconntest.Node{n}, 5)
	require.Equal(t, 2, n.Started())
	require.NoError(t, held[0].End())
	for _, rpc := range inside {
		require.Equal(t, result{node: "a"}, <-rpc)
	}
	require.Equal(t, result{node: "a"}, <-later[0])
	require.NoError(t, held[1].End())
}

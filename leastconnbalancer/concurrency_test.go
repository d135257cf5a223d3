package leastconnbalancer_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// peak is the highest number of handlers that ran at one time.
type peak struct{ live, most atomic.Int64 }

func (p *peak) option() grpc.ServerOption {
	return grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		live := p.live.Add(1)
		defer p.live.Add(-1)
		for most := p.most.Load(); live > most && !p.most.CompareAndSwap(most, live); {
			most = p.most.Load()
		}
		return handler(srv, s)
	})
}

// However many RPCs come at once, and whatever becomes of lists, connections and
// deadlines, no node has more than its cap, in leases and at the server, and no
// room is lost.
func TestCapIsNeverExceeded(t *testing.T) {
	e := parallelEnv(t)
	var peaks [3]peak
	var ns []*leastconntest.Node
	for i, name := range []string{"a", "b", "c"} {
		ns = append(ns, e.node(name, peaks[i].option()))
	}
	c := e.dialWith(guarded(leastconnbalancer.Config{MaxInFlight: 10}), ns...)
	stop := c.watch(atMost(10))
	changes := e.workers(1, func(context.Context, int) error {
		n := ns[rand.IntN(len(ns))]
		conns := n.Conns()
		n.GoAway()
		assert.NoError(t, c.UpdateNodes(ns[1:]...))
		assert.NoError(t, c.UpdateNodes(ns...))
		return leastconntest.WaitFor(e.ctx, "another connection to "+n.Name(), func() bool { return n.Conns() > conns })
	})
	burst := func(deadline func() time.Duration) (served int64) {
		var callers sync.WaitGroup
		var ended atomic.Int64
		for range 300 {
			callers.Go(func() {
				s, err := c.Open(e.within(deadline()))
				if err == nil && s.Ping() == nil && s.End() == nil {
					ended.Add(1)
				}
			})
		}
		callers.Wait()
		return ended.Load()
	}
	require.EqualValues(t, 300, burst(func() time.Duration { return 5 * patience }))
	for i := range peaks {
		require.LessOrEqual(t, peaks[i].most.Load(), int64(10), "handlers at one time")
	}
	// One RPC in ten is over before it begins, however fast the others are.
	require.Less(t, burst(func() time.Duration { return time.Duration(rand.IntN(4_000_000) - 400_000) }), int64(300))
	changes.stop()
	stop()
	c.waits(0)
	e.wait("all is given back", func() bool { return c.snapshot().InFlight == 0 })
	_, err := c.OpenTogether(e.ctx, 30)
	require.NoError(t, err)
	c.counts(ns, 10, 10, 10)
}

// A thousand that wait are all served, one behind the other.
func TestThousandWaiters(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	c := e.dialWith(guarded(leastconnbalancer.Config{MaxInFlight: 5}), ns...)
	held, _ := c.hold(10)
	stop := c.watch(atMost(5))
	var rpcs []<-chan result
	for range 1000 {
		rpcs = append(rpcs, e.async(func() (string, error) { return c.Unary(e.ctx) }))
	}
	c.waits(1000)
	require.NoError(t, leastconntest.EndAll(held))
	for _, rpc := range rpcs {
		require.NoError(t, (<-rpc).err)
	}
	stop()
	r := c.snapshot().EndpointSets[0]
	require.Zero(t, r.Waiting)
	require.EqualValues(t, 1000, r.Queued)
	require.EqualValues(t, 1010, r.Picks)
}

// What an RPC ends for while it waits is what it says, and its place goes to the
// next one.
func TestWaiterThatEndsLeavesTheQueue(t *testing.T) {
	e := parallelEnv(t)
	n := e.nodes("a")[0]
	c := e.dialWith(guarded(leastconnbalancer.Config{MaxInFlight: 1}), n)
	held, _ := c.hold(1)
	ctx, cancel := context.WithCancel(e.ctx)
	first := e.async(func() (string, error) { return c.Unary(ctx) })
	c.waits(1)
	second := e.async(func() (string, error) { return c.Unary(e.within(100 * time.Millisecond)) })
	require.Equal(t, codes.DeadlineExceeded, codeOf((<-second).err))
	c.waits(1)
	third := c.queue(1)
	cancel()
	require.Equal(t, codes.Canceled, codeOf((<-first).err))
	c.waits(1)
	require.Equal(t, 1, n.Started())
	require.NoError(t, held[0].End())
	require.Equal(t, result{node: "a"}, <-third[0])
	require.Zero(t, c.snapshot().EndpointSets[0].Penalties)
}

// With a cap at the server's MAX_CONCURRENT_STREAMS no stream waits in a
// connection while another node has room; with neither they do, and count there.
func TestCapAtTheStreamLimit(t *testing.T) {
	e := parallelEnv(t)
	ns := []*leastconntest.Node{e.node("a", grpc.MaxConcurrentStreams(2)), e.nodes("b")[0]}
	c := e.dialWith(guarded(leastconnbalancer.Config{MaxInFlight: 2, OnFull: leastconnbalancer.OnFullFail}), ns...)
	held, err := c.OpenTogether(e.ctx, 4)
	require.NoError(t, err)
	c.noRoom()
	leastconntest.CancelAll(held)
	c.reconfigure(leastconnbalancer.Config{StreamLimit: leastconnbalancer.StreamLimitIgnore}, ns...)
	ctx, cancel := context.WithCancel(e.ctx)
	opened := e.workers(12, func(_ context.Context, _ int) error {
		s, err := c.Open(ctx)
		if err == nil {
			<-ctx.Done()
			s.Cancel()
		}
		<-ctx.Done()
		return err
	})
	e.wait("half of the streams are meant for a", func() bool { n, _ := c.inFlight(ns[0]); return n == 6 && c.snapshot().InFlight == 12 })
	e.served(ns, 2, 6)
	opened.cancel()
	cancel()
	opened.stop()
}

// Choosing and counting are one step: a burst is spread evenly, and so are old
// streams that break together and come back at once.
func TestBurstsAreEven(t *testing.T) {
	e := parallelEnv(t)
	const each = 200
	ns := e.nodes("a", "b", "c")
	c := e.dialWith(guarded(leastconnbalancer.Config{FailurePenalty: leastconnbalancer.NewDuration(10 * time.Millisecond)}), ns...)
	held, err := c.OpenTogether(e.ctx, 3*each)
	require.NoError(t, err)
	c.counts(ns, each, each, each)
	opened := time.Now()
	e.wait("the streams are old", func() bool { return time.Since(opened) > 20*time.Millisecond })
	var reopened sync.WaitGroup
	for _, s := range held {
		if s.Node() != "a" {
			continue
		}
		reopened.Go(func() {
			assert.Equal(t, codes.Unavailable, codeOf(s.Wait()))
			_, err := c.Open(e.ctx)
			assert.NoError(t, err)
		})
	}
	ns[0].FailStreams(codes.Unavailable)
	reopened.Wait()
	require.Zero(t, c.snapshot().EndpointSets[0].Penalties)
	for _, n := range ns {
		count, _ := c.inFlight(n)
		require.InDelta(t, each, count, 1, "streams on %s", n.Name())
	}
}

// Calls that a GOAWAY meets half-way are picked again; none fails, each pick is
// given back. Connections that are told to go away soon after they are there still
// carry RPCs.
func TestGoAwayUnderCalls(t *testing.T) {
	t.Parallel()
	rounds := map[string]int{"at times": 20, "soon": 4} // connections that do not live come after pauses
	for name, age := range map[string]time.Duration{"at times": time.Hour, "soon": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			e := parallelEnv(t)
			aged := leastconntest.Options{ServerOptions: []grpc.ServerOption{grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: age})}}
			ns := e.nodesWith(aged, "a", "b")
			p := &recordingPolicy{}
			c := e.dialRecorded(p, leastconntest.ChannelConfig{
				Endpoints: leastconntest.Endpoints(ns...), DialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.WaitForReady(true))},
			})
			stop := c.watch(valid)
			callers := c.callers(8)
			for i := range rounds[name] {
				before := ns[i%2].Conns()
				if name == "at times" {
					ns[i%2].GoAway()
				}
				e.wait("a new connection", func() bool { return ns[i%2].Conns() > before })
				callers.goOn()
			}
			callers.stop()
			stop()
			require.Equal(t, p.picks.Load(), p.dones.Load(), "Dones for picks")
			require.Zero(t, c.snapshot().InFlight)
		})
	}
}

// Nodes of all levels stop and start while RPCs run, waiting and not: each RPC
// ends, none hangs on a picker of the past, each pick is given back.
func TestNothingHangsOnAStalePicker(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	p := &recordingPolicy{}
	cfg := quickly()
	cfg.ServiceConfig = selecting(`{"priorityFailover":"0.005s"}`)
	cfg.Endpoints = levels(ns[:2], ns[2:])
	c := e.dialRecorded(p, cfg, ns...)
	stop := c.watch(valid)
	var answered atomic.Int64
	callers := e.workers(16, func(ctx context.Context, i int) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, err := c.Unary(ctx, grpc.WaitForReady(i%2 == 0))
		if err == nil {
			answered.Add(1)
		}
		assert.Contains(t, []codes.Code{codes.OK, codes.Unavailable}, codeOf(err), "an RPC that hangs: %v", err)
		return err
	})
	restart := func() {
		for _, n := range ns {
			require.NoError(t, n.Restart())
		}
		seen := answered.Load()
		e.wait("RPCs are answered", func() bool { return answered.Load() > seen+5 })
	}
	for range 40 {
		n := ns[rand.IntN(len(ns))]
		switch rand.IntN(3) {
		case 0:
			n.GoAway()
		case 1:
			n.Stop()
		}
		if rand.IntN(2) == 0 {
			restart()
		}
	}
	restart()
	callers.stop()
	stop()
	require.Positive(t, callers.failed.Load())
	require.Equal(t, p.picks.Load(), p.dones.Load())
	c.counts(ns, 0, 0, 0)
}

// All nodes are replaced again and again under load: no RPC fails.
func TestReplacedAgainAndAgain(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c", "d")
	c := e.dial(ns[:2]...)
	callers := c.callers(3)
	for i := range 40 {
		c.update(ns[i%2*2 : i%2*2+2]...)
		callers.goOn()
	}
	callers.stop()
	require.Len(t, c.snapshot().Endpoints, 2)
}

// The first RPCs of a channel do not wait for one who calls Connect, and those
// under way when it closes end.
func TestChannelsComeAndGoUnderRPCs(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	for range 100 {
		c, err := leastconntest.Dial(leastconntest.ChannelConfig{Endpoints: leastconntest.Endpoints(ns...)})
		require.NoError(t, err)
		var rpcs, answered sync.WaitGroup
		var closing atomic.Bool
		for range 4 {
			answered.Add(1)
			rpcs.Go(func() {
				first := sync.OnceFunc(answered.Done)
				defer first()
				var err error
				for ; err == nil; first() {
					_, err = c.Unary(e.ctx)
				}
				assert.True(t, closing.Load(), "before Close: %v", err)
			})
		}
		answered.Wait()
		closing.Store(true)
		require.NoError(t, c.Close())
		rpcs.Wait()
	}
	e.served(ns, 0, 0)
}

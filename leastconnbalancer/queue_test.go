package leastconnbalancer_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

func TestD58TheRestWaits(t *testing.T) {
	l := newLab(t)
	ns, peaks := l.peaked("a", "b", "c")
	c := l.dialWith(guarded(capped(1)), ns...)
	for _, n := range ns {
		n.SetDelay(100 * time.Millisecond)
	}
	before := time.Now()
	var rpcs []<-chan result
	for range 10 {
		rpcs = append(rpcs, l.async(func() (string, error) { return c.Unary(l.ctx) }))
	}
	for _, rpc := range rpcs {
		require.NoError(t, (<-rpc).err)
	}
	took := time.Since(before)
	require.GreaterOrEqual(t, took, 400*time.Millisecond)
	require.Less(t, took, 2*time.Second)
	for i, p := range peaks {
		require.EqualValues(t, 1, p.most.Load(), "RPCs at one time at %s", ns[i].Name())
	}
}

// RPCs reach the nodes in the order in which they began to wait, whether they
// wait for readiness or not.
func TestWaitersAreServedInOrder(t *testing.T) {
	l := newLab(t)
	o := &order{}
	ns := o.nodes(l, "a", "b")
	c := l.dialWith(guarded(capped(1)), ns...)
	held, _ := c.hold(2)
	ns[0].HoldUnary(true)
	ns[1].HoldUnary(true)
	var rpcs []<-chan result
	var ids []string
	for i := range 20 {
		ids = append(ids, strconv.Itoa(i))
		rpcs = append(rpcs, o.send(c, ids[i], grpc.WaitForReady(i%3 == 0)))
		c.waits(i + 1)
	}
	require.NoError(t, held[0].End())
	for i := range 20 {
		o.have(l, ids[:i+1]...)
		c.waits(19 - i)
		for _, n := range ns {
			n.ReleaseUnary()
		}
		require.NoError(t, (<-rpcs[i]).err)
	}
	require.Equal(t, ids, o.seen())
	require.EqualValues(t, 20, c.snapshot().EndpointSets[0].Queued)
	require.NoError(t, held[1].End())
	c.counts(ns, 0, 0)
}

// What an RPC ends for while it waits is what it says, and its place goes to the
// next one.
func TestWaiterThatEndsLeavesTheLine(t *testing.T) {
	l := newLab(t)
	n := l.nodes("a")[0]
	c := l.dialWith(guarded(capped(1)), n)
	held, _ := c.hold(1)
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	first := l.async(func() (string, error) { return c.Unary(ctx) })
	c.waits(1)
	second := l.async(func() (string, error) { return c.Unary(l.within(100 * time.Millisecond)) })
	l.wait("the second RPC waits", func() bool { return c.snapshot().EndpointSets[0].Queued == 2 })
	third := l.async(func() (string, error) { return c.Unary(l.ctx) })
	require.Equal(t, codes.DeadlineExceeded, codeOf((<-second).err))
	l.wait("the third RPC waits", func() bool { return c.snapshot().EndpointSets[0].Queued == 3 })
	c.waits(2)
	cancel()
	require.Equal(t, codes.Canceled, codeOf((<-first).err))
	c.waits(1)
	require.Equal(t, 1, n.Started())
	require.NoError(t, held[0].End())
	require.Equal(t, result{node: "a"}, <-third)
	c.waits(0)
	require.Zero(t, c.penalties())
}

// Deadlines that end at any moment, that of the wake-up too, lose no room.
func TestImpatientWaitersLoseNoRoom(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialWith(guarded(capped(2)), ns...)
	stop := c.watch(atMost(2))
	var callers sync.WaitGroup
	var late, served atomic.Int64
	for range 40 {
		callers.Go(func() {
			for range 25 {
				ctx, cancel := context.WithTimeout(l.ctx, time.Duration(rand.IntN(4_000_000)))
				s, err := c.Open(ctx)
				if err == nil {
					_ = s.End()
					served.Add(1)
				} else {
					assert.Equal(t, codes.DeadlineExceeded, codeOf(err), "%v", err)
					late.Add(1)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	stop()
	require.Positive(t, served.Load(), "RPCs served")
	require.Greater(t, late.Load(), int64(100), "RPCs that were late")
	c.waits(0)
	l.wait("all leases are back", func() bool { return c.snapshot().InFlight == 0 })
	c.hold(4)
	c.counts(ns, 2, 2)
}

// A thousand that wait are all served, one behind the other.
func TestThousandWaiters(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialWith(guarded(capped(5)), ns...)
	held, _ := c.hold(10)
	stop := c.watch(atMost(5))
	var rpcs []<-chan result
	for range 1000 {
		rpcs = append(rpcs, l.async(func() (string, error) { return c.Unary(l.ctx) }))
	}
	c.waits(1000)
	before := time.Now()
	require.NoError(t, leastconntest.EndAll(held))
	for _, rpc := range rpcs {
		require.NoError(t, (<-rpc).err)
	}
	t.Logf("1000 RPCs that waited were served in %v", time.Since(before).Round(time.Millisecond))
	stop()
	r := c.snapshot().EndpointSets[0]
	require.Zero(t, r.Waiting)
	require.EqualValues(t, 1000, r.Queued)
	require.EqualValues(t, 1010, r.Picks)
	c.counts(ns, 0, 0)
}

// The RPCs of a channel that closes go, those of another one go on.
func TestClosedChannelLeavesTheLine(t *testing.T) {
	l := newLab(t)
	n := l.nodes("a")[0]
	cfg := guarded(leastconnbalancer.Config{ResourceKey: l.Name(), MaxInFlight: 1})
	one, two := l.dialAs(l.Name(), cfg, n), l.dialAs(l.Name(), cfg, n)
	two.waitMembers(2, n)
	held, _ := two.hold(1)
	gone := one.line(3)
	stays := two.line(2)
	require.NoError(t, one.Close())
	for _, rpc := range gone {
		require.Equal(t, codes.Canceled, codeOf((<-rpc).err))
	}
	two.waits(2)
	require.NoError(t, held[0].End())
	for _, rpc := range stays {
		require.Equal(t, result{node: "a"}, <-rpc)
	}
}

// When all nodes are lost, RPCs that wait for room end as others do, and those
// that wait for readiness are served once a node is back.
func TestWaitersWhenAllNodesAreLost(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	cfg := guarded(capped(1))
	cfg.DialOptions = quickly().DialOptions
	c := l.dialWith(cfg, ns...)
	held, _ := c.hold(2)
	fails := c.line(2)
	waits := l.async(func() (string, error) { return c.Unary(l.ctx, grpc.WaitForReady(true)) })
	c.waits(3)
	for _, n := range ns {
		n.Stop()
	}
	for _, s := range held {
		require.Equal(t, codes.Unavailable, codeOf(s.Wait()))
	}
	for _, rpc := range fails {
		require.Equal(t, codes.Unavailable, codeOf((<-rpc).err))
	}
	require.NoError(t, ns[1].Restart())
	require.Equal(t, result{node: "b"}, <-waits)
	c.waits(0)
}

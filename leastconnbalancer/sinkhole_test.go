package leastconnbalancer_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// slow starts nodes whose unary RPCs take 20 ms.
func (l *lab) slow(names ...string) []*leastconntest.Node {
	ns := l.nodes(names...)
	for _, n := range ns {
		n.SetDelay(20 * time.Millisecond)
	}
	return ns
}

// passes waits until d has gone by since a moment, and returns the new one.
func (l *lab) passes(since time.Time, d time.Duration) time.Time {
	l.Helper()
	l.wait("time passes", func() bool { return time.Since(since) >= d })
	return since.Add(d)
}

// A node that fails at once does not attract the RPCs, those that work take as
// many as without it, and it is found again when it is mended. What else the
// machine does may come between the two crews, so the round may be repeated.
func TestD49NoSinkhole(t *testing.T) {
	l := newLab(t)
	ns, other := l.slow("a", "b", "c"), l.slow("d", "e")
	failing(ns[0])
	c, alone := l.dial(ns...), l.dial(other...)
	with := c.crew(12, 2*time.Millisecond, c.unaryOnce)
	ratio, share := 0.0, 1.0
	for round := 0; (ratio < 0.95 || share > 0.05) && round < 3; round++ {
		begun := time.Now()
		without := alone.crew(12, 2*time.Millisecond, alone.unaryOnce)
		second := l.passes(begun, time.Second)
		end := l.passes(second, time.Second)
		without.stop()
		last, all, base := with.between(second, end), with.between(begun, end), without.between(begun, end)
		share, ratio = last.share(), float64(len(all)-all.failed())/float64(len(base))
		t.Logf("failed: %.1f %% of %d, in the last second %.1f %% of %d; %.3f × the healthy calls of two nodes alone",
			100*all.share(), len(all), 100*share, len(last), ratio)
		require.Positive(t, last.failed(), "the node is tried now and then")
		require.Zero(t, base.failed())
	}
	require.LessOrEqual(t, share, 0.05, "failed share in the last second")
	require.GreaterOrEqual(t, ratio, 0.95, "healthy calls")

	ns[0].SetFail(codes.OK)
	mended := time.Now()
	l.wait("a takes its part again", func() bool {
		now := time.Now()
		by := with.between(now.Add(-300*time.Millisecond), now).served()
		return 10*by["a"] > 8*by["b"] && 10*by["a"] > 8*by["c"]
	})
	t.Logf("a takes its part again after %v", time.Since(mended).Round(time.Millisecond))
	require.Less(t, time.Since(mended), 10*time.Second)
	with.stop()
	c.counts(ns, 0, 0, 0)
}

// unaryOnce makes a unary RPC.
func (c *channel) unaryOnce(ctx context.Context) (string, error) { return c.Unary(ctx) }

// What the penalty is for: without it most RPCs fail.
func TestD49WithoutPenalty(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	failing(ns[0])
	ns[1].SetDelay(200 * time.Millisecond)
	ns[2].SetDelay(200 * time.Millisecond)
	c := l.dialWith(guarded(penaltyFor(0)), ns...)
	begun := time.Now()
	w := c.crew(12, 2*time.Millisecond, c.unaryOnce)
	l.wait("calls", func() bool { return len(w.between(begun, time.Now())) >= 300 })
	w.stop()
	all := w.between(begun, time.Now())
	t.Logf("failed: %.1f %% of %d", 100*all.share(), len(all))
	require.Greater(t, all.share(), 0.5)
}

// A node that hangs takes as many RPCs as the others have, no more, and serves
// again once it does not hang.
func TestHungNodeTakesItsPartOnly(t *testing.T) {
	l := newLab(t)
	ns := l.slow("a", "b", "c")
	ns[0].HoldUnary(true)
	c := l.dial(ns...)
	w := c.crew(12, 2*time.Millisecond, func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		return c.Unary(ctx)
	})
	begun := time.Now()
	stop := c.watch(atMost(5))
	end := l.passes(begun, time.Second)
	stop()
	all := w.between(begun, end)
	t.Logf("late: %d of %d", all.failed(), len(all))
	require.Positive(t, all.failed(), "RPCs that hang")
	require.Less(t, all.share(), 0.1)
	require.Zero(t, c.penalties())
	ns[0].HoldUnary(false)
	l.wait("a serves", func() bool { return w.between(end, time.Now()).served()["a"] > 20 })
	w.stop()
	c.counts(ns, 0, 0, 0)
}

// When all nodes fail, none is preferred.
func TestAllNodesFailEvenly(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	failing(ns...)
	c := l.dial(ns...)
	w := c.crew(12, 2*time.Millisecond, c.unaryOnce)
	l.wait("attempts", func() bool { return sum(started(ns)) >= 1500 })
	w.stop()
	got := started(ns)
	t.Logf("attempts by node: %v, penalties %d", got, c.penalties())
	for _, n := range got {
		require.InDelta(t, float64(sum(got))/3, n, 6, "attempts by node: %v", got)
	}
}

func sum(counts []int) (n int) {
	for _, k := range counts {
		n += k
	}
	return n
}

// A node that fails one call in ten gets less, and does not starve.
func TestNodeThatFailsNowAndThenIsNotStarved(t *testing.T) {
	l := newLab(t)
	now := grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if rand.IntN(10) == 0 {
			return nil, status.Error(codes.Unavailable, "now and then")
		}
		return handler(ctx, req)
	})
	ns := append([]*leastconntest.Node{l.node(leastconntest.Options{
		Name: "a", Delay: 20 * time.Millisecond, ServerOptions: []grpc.ServerOption{now},
	})}, l.slow("b", "c")...)
	c := l.dial(ns...)
	begun := time.Now()
	w := c.crew(12, 2*time.Millisecond, c.unaryOnce)
	end := l.passes(begun, 2500*time.Millisecond)
	w.stop()
	all := w.between(begun, end)
	t.Logf("served by node: %v, failed %d, longest pause %v", all.served(), all.failed(), all.pause("a"))
	require.Less(t, all.pause("a"), 2*time.Second, "twice as long as a penalty lasts")
	require.Less(t, all.share(), 0.05)
}

package leastconnbalancer_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// penaltyFor makes failures weigh on their nodes for d.
func penaltyFor(d time.Duration) leastconnbalancer.Config {
	return leastconnbalancer.Config{FailurePenalty: leastconnbalancer.NewDuration(d)}
}

// blamed are the codes by which a node is said to have failed.
var blamed = []codes.Code{codes.Unavailable, codes.Internal, codes.Unknown, codes.DataLoss, codes.ResourceExhausted}

// failures are ways in which a node makes an RPC of a channel fail with a code.
var failures = map[string]func(*channel, []*leastconntest.Node, codes.Code) error{
	"unary": func(c *channel, ns []*leastconntest.Node, code codes.Code) error {
		for _, n := range ns {
			n.SetFail(code)
			defer n.SetFail(codes.OK)
		}
		_, err := c.Unary(c.lab.ctx)
		return err
	},
	"stream at once": func(c *channel, ns []*leastconntest.Node, code codes.Code) error {
		for _, n := range ns {
			n.SetFail(code)
			defer n.SetFail(codes.OK)
		}
		_, err := c.Open(c.lab.ctx)
		return err
	},
	"stream later": func(c *channel, ns []*leastconntest.Node, code codes.Code) error {
		s, _ := c.hold(1)
		for _, n := range ns {
			n.FailStreams(code)
		}
		return s[0].Wait()
	},
}

// Of all codes that a node may answer, five weigh on it.
func TestCodesThatWeigh(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b")
			for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
				c := l.dialWith(guarded(penaltyFor(time.Minute)), ns...)
				require.Equal(t, code, codeOf(fail(c, ns, code)))
				want := 0
				if slices.Contains(blamed, code) {
					want = 1
				}
				require.Equal(t, want, c.penalty(ns...), "after %v", code)
				require.Equal(t, want, c.penalties(), "after %v", code)
				c.counts(ns, 0, 0)
				require.NoError(t, c.Close())
			}
		})
	}
}

// With a penalty of "0s" nothing weighs.
func TestNoPenaltyWithoutTime(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b")
			c := l.dialWith(guarded(penaltyFor(0)), ns...)
			for _, code := range blamed {
				require.Error(t, fail(c, ns, code))
			}
			require.Zero(t, c.penalty(ns...))
			require.Zero(t, c.penalties())
		})
	}
}

// By default a failure weighs for a second.
func TestPenaltyOfASecondByDefault(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns...)
	before := time.Now()
	require.Error(t, failures["unary"](c, ns, codes.Unavailable))
	require.Equal(t, 1, c.penalty(ns...))
	l.wait("it is over", func() bool { return c.penalty(ns...) == 0 })
	require.GreaterOrEqual(t, time.Since(before), time.Second)
	require.Less(t, time.Since(before), 5*time.Second)
	require.Equal(t, map[string]int{"a": 5, "b": 5}, tally(c.calls(10)))
	require.Equal(t, 1, c.penalties())
}

// What callers do is no failure of the node.
func TestCancelsAndDeadlinesDoNotWeigh(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialWith(guarded(penaltyFor(time.Minute)), ns...)
	for _, n := range ns {
		n.HoldUnary(true)
	}
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	var rpcs []<-chan result
	for i := range 20 {
		if i%2 == 0 {
			rpcs = append(rpcs, l.async(func() (string, error) { return c.Unary(ctx) }))
		} else {
			rpcs = append(rpcs, l.async(func() (string, error) { return c.Unary(l.within(100 * time.Millisecond)) }))
		}
	}
	l.served(ns, 10, 10)
	cancel()
	for _, rpc := range rpcs {
		require.Contains(t, []codes.Code{codes.Canceled, codes.DeadlineExceeded}, codeOf((<-rpc).err))
	}
	held, _ := c.hold(4)
	leastconntest.CancelAll(held)
	held, _ = c.hold(4)
	require.NoError(t, c.Close())
	for _, s := range held {
		require.Equal(t, codes.Canceled, codeOf(s.Wait()))
	}

	c = l.dialWith(guarded(penaltyFor(time.Minute)), ns...)
	_, err := c.Unary(l.within(-time.Second))
	require.Equal(t, codes.DeadlineExceeded, codeOf(err))
	require.Zero(t, c.penalties())
	require.Zero(t, c.penalty(ns...))
}

// A connection that breaks is a failure of those RPCs that it takes along young.
func TestBrokenConnectionWeighs(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	cfg := guarded(penaltyFor(time.Minute))
	cfg.DialOptions = quickly().DialOptions
	c := l.dialWith(cfg, ns...)
	held, _ := c.hold(6)
	c.stop(ns[0])
	for _, s := range held {
		if s.Node() == "a" {
			require.Equal(t, codes.Unavailable, codeOf(s.Wait()))
		}
	}
	c.counts(ns, 0, 3)
	require.Equal(t, 3, c.penalty(ns[0]))
	require.NoError(t, ns[0].Restart())
	c.waitReady(ns[0])
	_, by := c.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
}

// An attempt that lived longer than the penalty lasts leaves none.
func TestOldAttemptsLeaveNoPenalty(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialWith(guarded(penaltyFor(200*time.Millisecond)), ns...)
	old, _ := c.hold(2)
	l.wait("the streams are old", func() bool {
		return c.of(ns[0]).OldestSeconds > 0.3 && c.of(ns[1]).OldestSeconds > 0.3
	})
	young, _ := c.hold(2)
	for _, n := range ns {
		n.FailStreams(codes.Unavailable)
	}
	for _, s := range append(old, young...) {
		require.Equal(t, codes.Unavailable, codeOf(s.Wait()))
	}
	require.LessOrEqual(t, c.penalties(), 2)
}

// A penalty goes with the node that it weighs on, and with the last of those
// that list it.
func TestPenaltyGoesWithItsNode(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	cfg := guarded(leastconnbalancer.Config{ResourceKey: l.Name(), FailurePenalty: leastconnbalancer.NewDuration(time.Minute)})
	c, other := l.dialAs(l.Name(), cfg, ns...), l.dialAs(l.Name(), cfg, ns...)
	other.waitMembers(2, ns...)
	require.Error(t, failures["unary"](c, ns, codes.Internal))
	i := slices.IndexFunc(ns, func(n *leastconntest.Node) bool { return c.penalty(n) == 1 })
	require.GreaterOrEqual(t, i, 0)
	fined := ns[i]
	rest := slices.Delete(slices.Clone(ns), i, i+1)

	require.NoError(t, c.UpdateNodes(rest...))
	require.Equal(t, 1, c.penalty(fined), "the other channel lists it")
	require.NotContains(t, other.calls(10), fined.Name())
	require.NoError(t, other.UpdateNodes(rest...))
	require.Equal(t, state.EndpointSnapshot{}, c.of(fined))
	c.update(ns...)
	require.Zero(t, c.penalty(ns...))
	require.Contains(t, c.calls(3), fined.Name())
}

// Penalties take room at a cap while a node is busy, and none when they are all that
// fills the nodes.
func TestPenaltyTakesRoom(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialWith(guarded(leastconnbalancer.Config{
		FailurePenalty: leastconnbalancer.NewDuration(time.Minute), MaxInFlight: 1, OnFull: leastconnbalancer.OnFullFail,
	}), ns...)
	for range 6 {
		require.Error(t, failures["unary"](c, ns, codes.Unavailable))
	}
	require.Equal(t, 6, c.penalty(ns...))
	held, _ := c.hold(1)
	c.refused()
	require.NoError(t, held[0].End())
	c.hold(1)
	c.refused()
}

// Switched off or on at run time, it holds for the failures from then on.
func TestPenaltyChangesAtRunTime(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	c := l.dialWith(guarded(penaltyFor(time.Minute)), ns...)
	fail := func(want int) {
		t.Helper()
		require.Error(t, failures["unary"](c, ns, codes.Unavailable))
		require.Equal(t, want, c.penalty(ns...))
	}
	fail(1)
	c.reconfigure(penaltyFor(0), ns...)
	fail(1)
	c.reconfigure(leastconnbalancer.Config{}, ns...)
	fail(2)
	l.wait("the second penalty is over", func() bool { return c.penalty(ns...) == 1 })
	c.reconfigure(penaltyFor(time.Minute), ns...)
	fail(2)
	l.conns(ns, 1, 1, 1, 1)
}

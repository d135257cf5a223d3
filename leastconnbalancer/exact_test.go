package leastconnbalancer_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

func TestD26TheBusierOfTwoIsNeverChosen(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns...)

	held := c.load(ns, 5, 0)
	more, by := c.hold(5)
	require.Equal(t, map[string]int{"b": 5}, by)
	l.served(ns, 5, 5)
	leastconntest.CancelAll(append(held, more...))

	for range 200 {
		loads := []int{rand.IntN(10), rand.IntN(10)}
		held := c.load(ns, loads...)
		s, err := c.Open(l.ctx)
		require.NoError(t, err)
		to := slices.IndexFunc(ns, func(n *leastconntest.Node) bool { return n.Name() == s.Node() })
		require.LessOrEqual(t, loads[to], loads[1-to], "loads %v, chosen %s", loads, s.Node())
		leastconntest.CancelAll(append(held, s))
	}
}

func TestD27HeldStreamsAreEven(t *testing.T) {
	for _, n := range []int{5, 60} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes(names(n)...)
			c := l.dial(ns...)
			for round := 1; round <= 10; round++ {
				c.hold(n)
				c.counts(ns, slices.Repeat([]int{round}, n)...)
			}
			l.served(ns, slices.Repeat([]int{10}, n)...)
		})
	}
}

func TestD28IdleNodesShareSerialCalls(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dial(ns...)
	for range 2 {
		by := tally(c.calls(300))
		for _, n := range ns {
			require.InDelta(t, 100, by[n.Name()], 1, "calls by node: %v", by)
		}
		slices.Reverse(ns)
		c.update(ns...)
	}
}

func TestD31TiesRotate(t *testing.T) {
	l := newLab(t)
	ns := l.nodes(names(5)...)
	c := l.dial(ns...)
	order := c.calls(50)
	for i := range order[5:] {
		require.Equal(t, order[i], order[i+5], "the order of the calls: %v", order)
	}
	require.Len(t, tally(order[:5]), 5, "the order of the calls: %v", order)
}

func TestD32TheLeastLoadedIsChosen(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dial(ns...)

	held := c.load(ns, 3, 1, 2)
	more, by := c.hold(1)
	require.Equal(t, map[string]int{"b": 1}, by)
	leastconntest.CancelAll(append(held, more...))

	c.load(ns, 0, 0, 1)
	require.Equal(t, map[string]int{"a": 10, "b": 10}, tally(c.calls(20)))
	_, by = c.hold(2)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, by)
	c.counts(ns, 1, 1, 1)
}

func TestD37NoRPCWaitsForAReconnect(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	a := ns[0]
	d := newDialer()
	c := l.dialWith(leastconntest.ChannelConfig{DialOptions: dialOptions(d)}, ns...)

	d.shut(a)
	require.NoError(t, a.Restart())
	l.wait("the channel reconnects to a", func() bool { return d.attempts(a) == 2 })
	held, err := c.OpenTogether(l.ctx, 16)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"b": 16}, leastconntest.Counts(held))
	c.counts(ns, 0, 16)

	d.open(a)
	c.waitReady(a)
	more, err := c.OpenTogether(l.ctx, 16)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 16}, leastconntest.Counts(more))
	c.counts(ns, 16, 16)
}

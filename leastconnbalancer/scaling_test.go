package leastconnbalancer_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Scaling out: the next streams go to the node that has just joined.
func TestD01ScaleOutTwoToThree(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dial(ns[:2]...)
	_, by := c.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)

	c.update(ns...)
	_, by = c.hold(2)
	require.Equal(t, map[string]int{"c": 2}, by)
	c.counts(ns, 2, 2, 2)
	_, by = c.hold(3)
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, by)
	l.served(ns, 3, 3, 3)
}

// What a node carries while it is alone counts when others join.
func TestD02ScaleOutFromOneNode(t *testing.T) {
	t.Run("1 to 2", func(t *testing.T) {
		l := newLab(t)
		ns := l.nodes("a", "b")
		c := l.dial(ns[0])
		c.hold(4)
		c.update(ns...)
		_, by := c.hold(4)
		require.Equal(t, map[string]int{"b": 4}, by)
		c.counts(ns, 4, 4)
		l.served(ns, 4, 4)
	})
	t.Run("1 to 5", func(t *testing.T) {
		l := newLab(t)
		ns := l.nodes("a", "b", "c", "d", "e")
		c := l.dial(ns[0])
		c.hold(8)
		c.update(ns...)
		_, by := c.hold(32)
		require.Equal(t, map[string]int{"b": 8, "c": 8, "d": 8, "e": 8}, by)
		c.counts(ns, 8, 8, 8, 8, 8)
		l.served(ns, 8, 8, 8, 8, 8)
	})
}

// Streams that end after a scale-out are taken off the load that is in use.
func TestD04ReleasesAfterScaleOut(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dial(ns[:2]...)
	streams, by := c.hold(8)
	require.Equal(t, map[string]int{"a": 4, "b": 4}, by)

	c.update(ns...)
	for _, s := range streams {
		if s.Node() == "a" {
			require.NoError(t, s.End())
		}
	}
	_, by = c.hold(8)
	require.Equal(t, map[string]int{"a": 4, "c": 4}, by)
	c.counts(ns, 4, 4, 4)
	l.served(ns, 4, 4, 4)
}

// An endpoint that joins is used though no other connection changes its state.
func TestD11AddedEndpointIsUsed(t *testing.T) {
	for _, held := range []int{0, 1} {
		t.Run(fmt.Sprintf("%d on each", held), func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b", "c")
			c := l.dial(ns[:2]...)
			c.hold(2 * held)
			c.update(ns...)
			if held > 0 {
				require.Equal(t, "c", c.unary())
			} else {
				// Idle equals take turns: one round reaches the newcomer.
				require.ElementsMatch(t, []string{"a", "b", "c"}, []string{c.unary(), c.unary(), c.unary()})
			}
			l.conns(ns, 1, 1, 1)
		})
	}
}

// Long unary calls count as streams do.
func TestLongUnaryCallsAfterScaleOut(t *testing.T) {
	t.Run("2 to 3", func(t *testing.T) {
		l := newLab(t)
		ns := l.nodes("a", "b", "c")
		c := l.dial(ns[:2]...)
		finish := c.holdUnary(4, ns...)
		l.served(ns, 2, 2, 0)
		c.update(ns...)
		finishMore := c.holdUnary(2)
		l.served(ns, 2, 2, 2)
		c.counts(ns, 2, 2, 2)
		l.release(ns...)
		require.Equal(t, map[string]int{"a": 2, "b": 2}, finish())
		require.Equal(t, map[string]int{"c": 2}, finishMore())
		c.counts(ns, 0, 0, 0)
	})
	t.Run("1 to 2", func(t *testing.T) {
		l := newLab(t)
		ns := l.nodes("a", "b")
		c := l.dial(ns[0])
		finish := c.holdUnary(4, ns...)
		l.served(ns, 4, 0)
		c.update(ns...)
		finishMore := c.holdUnary(4)
		l.served(ns, 4, 4)
		c.counts(ns, 4, 4)
		l.release(ns...)
		require.Equal(t, map[string]int{"a": 4}, finish())
		require.Equal(t, map[string]int{"b": 4}, finishMore())
		c.counts(ns, 0, 0)
	})
}

// holdUnary starts n unary calls, one after another, which the nodes hold. The
// function it returns waits for their answers and says who gave them.
func (c *channel) holdUnary(n int, nodes ...*leastconntest.Node) (finish func() map[string]int) {
	c.lab.Helper()
	for _, node := range nodes {
		node.HoldUnary(true)
	}
	type answer struct {
		by  string
		err error
	}
	answers := make(chan answer, n)
	for range n {
		before := c.snapshot().InFlight
		go func() {
			r, err := c.Client().UnaryCall(c.lab.ctx, &grpc_testing.SimpleRequest{})
			answers <- answer{r.GetUsername(), err}
		}()
		c.lab.wait("the unary call is in flight", func() bool { return c.snapshot().InFlight == before+1 })
	}
	return func() map[string]int {
		c.lab.Helper()
		by := map[string]int{}
		for range n {
			a := <-answers
			require.NoError(c.lab, a.err)
			by[a.by]++
		}
		return by
	}
}

// release answers the unary calls that the nodes hold.
func (l *lab) release(nodes ...*leastconntest.Node) {
	for _, n := range nodes {
		n.HoldUnary(false)
	}
}

// Scaling in: the streams of the node that leaves live on and still count as
// its own, the others share what is new.
func TestScaleDown(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dial(ns...)
	streams, by := c.hold(6)
	require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2}, by)

	c.update(ns[:2]...)
	_, by = c.hold(4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	require.NoError(t, leastconntest.PingAll(streams))
	c.counts(ns, 4, 4, 2)

	for _, s := range streams {
		if s.Node() == "c" {
			require.NoError(t, s.End())
		}
	}
	_, known := c.inFlight(ns[2])
	require.False(t, known, "a departed node without streams is forgotten")
	l.served(ns, 4, 4, 0)
}

// Replicas that join take all that is new until they are level; the first one,
// which has burned so far, gets nothing.
func TestD86ReplicasThatJoinTakeTheLoad(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	c := l.dial(ns[0])
	held, _ := c.hold(40)
	require.Equal(t, []int{40, 0, 0, 0}, started(ns))

	c.update(ns...)
	more, err := c.OpenTogether(l.ctx, 120)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"b": 40, "c": 40, "d": 40}, leastconntest.Counts(more))
	require.Equal(t, []int{40, 40, 40, 40}, started(ns), "streams begun at each node")
	l.served(ns, 40, 40, 40, 40)
	require.NoError(t, leastconntest.PingAll(append(held, more...)))
	l.conns(ns, 1, 1, 1, 1)
}

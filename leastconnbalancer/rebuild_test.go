package leastconnbalancer_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

const roundRobinConfig = `{"loadBalancingConfig":[{"round_robin":{}}]}`

// switchAway replaces the channel's policy by round_robin and waits until it is
// closed.
func (c *channel) switchAway(nodes ...*leastconntest.Node) {
	c.lab.Helper()
	before := c.members(nodes[0])
	require.NoError(c.lab, c.UpdateConfig(roundRobinConfig, leastconntest.Endpoints(nodes...)...))
	c.waitMembers(before-1, nodes...)
}

// switchBack returns from round_robin, on whose connections no stream may be
// open, and waits until that is closed: each node then has a connection for each
// member, and those that only live on for the streams of an earlier policy.
func (c *channel) switchBack(draining int, nodes ...*leastconntest.Node) {
	c.lab.Helper()
	members := c.members(nodes[0]) + 1
	require.NoError(c.lab, c.UpdateConfig(leastconntest.DefaultServiceConfig, leastconntest.Endpoints(nodes...)...))
	c.waitMembers(members, nodes...)
	for _, n := range nodes {
		c.lab.wait("round_robin has left "+n.Name(), func() bool { return n.OpenConns() == members+draining })
	}
}

// A policy that is built anew finds the load that the old one has left.
func TestCountKeptAcrossRebuild(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns[0])
	streams, _ := c.hold(4)
	c.switchAway(ns[0])
	c.counts(ns, 4, 0)
	c.switchBack(1, ns[0])
	c.counts(ns, 4, 0)
	require.NoError(t, leastconntest.PingAll(streams))
	c.update(ns...)
	_, by := c.hold(4)
	require.Equal(t, map[string]int{"b": 4}, by)
	c.counts(ns, 4, 4)
}

// A node whose sessions have ended is chosen again.
func TestDrainedNodeReturnsToThePool(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns[0])
	streams, _ := c.hold(4)
	c.update(ns...)
	_, by := c.hold(4)
	require.Equal(t, map[string]int{"b": 4}, by)
	require.NoError(t, leastconntest.EndAll(streams))
	c.counts(ns, 0, 4)
	_, by = c.hold(4)
	require.Equal(t, map[string]int{"a": 4}, by)
	c.counts(ns, 4, 4)
}

// A stream picked by an old picker ends where the new one looks.
func TestReleaseOnOldPickerIsSeenByTheNewOne(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns[0])
	streams, _ := c.hold(2)
	c.switchAway(ns[0])
	c.switchBack(1, ns[0])
	c.update(ns...)
	c.hold(2)
	c.counts(ns, 2, 2)
	require.NoError(t, streams[0].End())
	c.counts(ns, 1, 2)
	_, by := c.hold(1)
	require.Equal(t, map[string]int{"a": 1}, by)
	c.counts(ns, 2, 2)
}

// privately returns the snapshots of the ledgers without a key that know n.
func privately(n *leastconntest.Node) []state.Snapshot {
	return slices.DeleteFunc(state.Snapshots(), func(s state.Snapshot) bool {
		return s.ResourceKey != "" || !slices.ContainsFunc(s.Endpoints, func(ns state.EndpointSnapshot) bool {
			return slices.Contains(ns.Addresses, n.Addr()) && len(ns.Members) == 1 && ns.Members[0].Ready
		})
	})
}

// Without a resource key each channel's load is its own.
func TestKeylessFallback(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	one := l.dialParent(&parent{keyless: true}, leastconntest.ChannelConfig{}, ns[0])
	one.hold(6)
	two := l.dialParent(&parent{keyless: true}, leastconntest.ChannelConfig{}, ns...)
	l.wait("both ledgers", func() bool { return len(privately(ns[0])) == 2 && len(privately(ns[1])) == 1 })
	_, by := two.hold(6)
	require.Equal(t, map[string]int{"a": 3, "b": 3}, by)
	for _, s := range privately(ns[0]) {
		require.EqualValues(t, 6, s.InFlight)
	}
	require.NoError(t, one.UpdateNodes(ns...))
	l.wait("the first knows b", func() bool { return len(privately(ns[1])) == 2 })
	_, by = one.hold(6)
	require.Equal(t, map[string]int{"b": 6}, by)
}

// An only node is counted as any other, with every kind of RPC.
func TestSingleNodeIsCounted(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a")
	c := l.dial(ns...)
	streams, _ := c.hold(3)
	finish := c.holdUnary(2, ns...)
	c.counts(ns, 5)
	l.release(ns...)
	finish()
	c.counts(ns, 3)
	require.NoError(t, leastconntest.EndAll(streams))
	c.counts(ns, 0)
}

// Long streams are released at their end, whoever ends them, read or not.
func TestLongStreamsAreReleasedWhenTheyEnd(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns...)
	streams, _ := c.hold(4)
	require.NoError(t, streams[0].End())
	require.EqualValues(t, 3, c.snapshot().InFlight)
	streams[1].Cancel()
	require.EqualValues(t, 2, c.snapshot().InFlight)
	for _, n := range ns {
		n.FailStreams(codes.DataLoss)
	}
	for _, s := range streams[2:] {
		require.Equal(t, codes.DataLoss, status.Code(s.Wait()))
	}
	c.counts(ns, 0, 0)
}

// A stream that nobody reads is released when its context ends.
func TestUnreadStreamIsReleasedWithItsContext(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a")
	c := l.dial(ns...)
	released := func() bool { return c.snapshot().InFlight == 0 }
	ctx, cancel := context.WithCancel(l.ctx)
	s, err := c.Client().FullDuplexCall(ctx)
	require.NoError(t, err)
	_, err = s.Header()
	require.NoError(t, err)
	c.counts(ns, 1)
	cancel()
	l.wait("the cancelled stream is released", released)

	ctx, cancel = context.WithTimeout(l.ctx, 200*time.Millisecond)
	defer cancel()
	_, err = c.Client().FullDuplexCall(ctx)
	require.NoError(t, err)
	<-ctx.Done()
	l.wait("the expired stream is released", released)
}

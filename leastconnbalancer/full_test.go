package leastconnbalancer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// failsFull makes channels fail RPCs that find no room.
func failsFull(limit uint32) leastconnbalancer.Config {
	return leastconnbalancer.Config{MaxInFlight: limit, OnFull: leastconnbalancer.OnFullFail}
}

// refused checks that RPCs fail now for want of room, and returns how long that
// took.
func (c *channel) refused(opts ...grpc.CallOption) time.Duration {
	c.lab.Helper()
	before := time.Now()
	_, err := c.Unary(c.lab.ctx, opts...)
	took := time.Since(before)
	require.Equal(c.lab, codes.ResourceExhausted, status.Code(err), "%v", err)
	require.Equal(c.lab, "least_conn: all endpoints are full (maxInFlight), and no more RPCs may wait for room (onFull, maxQueued)",
		status.Convert(err).Message())
	return took
}

func TestD58TheRestFails(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	for _, n := range ns {
		n.HoldUnary(true)
	}
	c := l.dialWith(guarded(failsFull(1)), ns...)
	rpcs := make(chan result, 10)
	for range 10 {
		go func() {
			node, err := c.Unary(l.ctx)
			rpcs <- result{node, err}
		}()
	}
	for range 7 {
		require.Equal(t, codes.ResourceExhausted, codeOf((<-rpcs).err))
	}
	fastest := time.Hour
	for range 20 {
		fastest = min(fastest, c.refused())
	}
	require.Less(t, fastest, 10*time.Millisecond)
	c.refused(grpc.WaitForReady(true))
	l.served(ns, 1, 1, 1)
	require.Equal(t, []int{1, 1, 1}, started(ns))
	require.Zero(t, c.snapshot().Waiting)
	for _, n := range ns {
		n.ReleaseUnary()
	}
	var served []string
	for range 3 {
		r := <-rpcs
		require.NoError(t, r.err)
		served = append(served, r.node)
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, tally(served))
	require.Zero(t, c.penalties(), "a refusal is nobody's failure")
}

func TestD58DeadlineWhileWaiting(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dialWith(guarded(capped(1)), ns...)
	for _, n := range ns {
		n.HoldUnary(true)
	}
	var served, late []<-chan result
	for range 3 {
		served = append(served, l.async(func() (string, error) { return c.Unary(l.ctx) }))
	}
	l.served(ns, 1, 1, 1)
	ctx, cancel := context.WithTimeout(l.ctx, 150*time.Millisecond)
	defer cancel()
	for range 7 {
		late = append(late, l.async(func() (string, error) { return c.Unary(ctx) }))
	}
	for _, rpc := range late {
		require.Equal(t, codes.DeadlineExceeded, codeOf((<-rpc).err))
	}
	require.Equal(t, []int{1, 1, 1}, started(ns))
	c.waits(0)
	for _, n := range ns {
		n.ReleaseUnary()
	}
	for _, rpc := range served {
		require.NoError(t, (<-rpc).err)
	}
}

// No more RPCs wait than may; one that leaves makes room for another. Each
// channel has a line of its own.
func TestMaxQueued(t *testing.T) {
	l := newLab(t)
	n := l.nodes("a")[0]
	cfg := leastconnbalancer.Config{ResourceKey: l.Name(), MaxInFlight: 1, MaxQueued: ptr[uint32](2)}
	c, other := l.dialAs(l.Name(), guarded(cfg), n), l.dialAs(l.Name(), guarded(cfg), n)
	other.waitMembers(2, n)
	held, _ := c.hold(1)
	rpcs := c.line(2)
	c.refused()
	c.refused(grpc.WaitForReady(true))
	rpcs = append(rpcs, other.line(2)...)
	other.refused()
	require.NoError(t, held[0].End())
	for _, rpc := range rpcs {
		require.Equal(t, result{node: "a"}, <-rpc)
	}
	require.Equal(t, "a", c.unary())
}

// A change of the configuration takes effect at once, with the connections that
// there are, and leaves what is under way alone.
func TestCapsChangeAtRunTime(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns...)
	held, _ := c.hold(6)
	c.reconfigure(failsFull(4), ns...)
	more, _ := c.hold(2)
	c.refused()
	c.reconfigure(failsFull(1), ns...)
	require.NoError(t, leastconntest.PingAll(append(held, more...)))
	for left := 4; left > 0; left-- { // at each node
		require.True(t, c.member(ns[0]).Full)
		c.refused()
		for _, n := range ns {
			held = endOne(t, append(held, more...), n)
			more = nil
		}
	}
	more, by := c.hold(2)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, by)
	c.refused()

	c.reconfigure(capped(1), ns...)
	rpcs := c.line(3)
	c.reconfigure(failsFull(1), ns...)
	c.refused()
	c.waits(3)
	require.NoError(t, more[0].End())
	for _, rpc := range rpcs {
		require.NoError(t, (<-rpc).err, "those that wait already go on")
	}
	c.reconfigure(leastconnbalancer.Config{}, ns...)
	c.hold(9)
	c.counts(ns, 5, 5)
	l.conns(ns, 1, 1)
}

// endOne ends one of the streams on the node and returns the others.
func endOne(t *testing.T, streams []*leastconntest.Stream, n *leastconntest.Node) []*leastconntest.Stream {
	t.Helper()
	for i, s := range streams {
		if s.Node() == n.Name() {
			require.NoError(t, s.End())
			return append(streams[:i:i], streams[i+1:]...)
		}
	}
	require.Fail(t, "no stream is open", n.Name())
	return nil
}

// An RPC that all nodes are too full for fails as such, whatever its service
// config says of retries.
func TestRefusedRPCIsNotRetried(t *testing.T) {
	l := newLab(t)
	n := l.nodes("a")[0]
	cfg := retrying(5)
	cfg.ServiceConfig = strings.NewReplacer(`"failurePenalty":"0s"`, `"maxInFlight":1,"onFull":"fail"`,
		"UNAVAILABLE", "RESOURCE_EXHAUSTED").Replace(cfg.ServiceConfig)
	p := &parent{}
	c := l.dialParent(p, cfg, n)
	c.hold(1)
	c.refused()
	require.EqualValues(t, 1, p.picks.Load())
	require.Equal(t, 1, n.Started())
}

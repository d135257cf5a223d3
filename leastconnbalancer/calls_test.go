package leastconnbalancer_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// load holds want[i] streams on nodes[i]; there must be none before.
func (c *channel) load(nodes []*leastconntest.Node, want ...int) []*leastconntest.Stream {
	c.lab.Helper()
	left := map[string]int{}
	for i, n := range nodes {
		left[n.Name()] = want[i]
	}
	streams, _ := c.hold(len(nodes) * slices.Max(want))
	kept := streams[:0]
	for _, s := range streams {
		if left[s.Node()] == 0 {
			s.Cancel()
			continue
		}
		left[s.Node()]--
		kept = append(kept, s)
	}
	c.counts(nodes, want...)
	return kept
}

// calls makes n unary RPCs, one after another, and returns where they went.
func (c *channel) calls(n int) (nodes []string) {
	c.lab.Helper()
	for range n {
		node, err := c.Unary(c.lab.ctx)
		require.NoError(c.lab, err)
		nodes = append(nodes, node)
	}
	return nodes
}

// tally counts the nodes by name.
func tally(nodes []string) map[string]int {
	by := map[string]int{}
	for _, n := range nodes {
		by[n]++
	}
	return by
}

// names returns n names for nodes.
func names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "n" + strconv.Itoa(i)
	}
	return names
}

// result is what came of an RPC.
type result struct {
	node string
	err  error
}

// async makes an RPC that the test goes on without.
func (l *lab) async(rpc func() (node string, err error)) <-chan result {
	done := make(chan result, 1)
	go func() {
		node, err := rpc()
		done <- result{node, err}
	}()
	return done
}

// conns checks how many connections the nodes have accepted so far.
func (l *lab) conns(nodes []*leastconntest.Node, want ...int) {
	l.Helper()
	got := make([]int, len(nodes))
	for i, n := range nodes {
		got[i] = n.Conns()
	}
	require.Equal(l, want, got, "connections by node")
}

// brief is how an RPC ends that may wait 100 ms for a picker that takes it.
func (c *channel) brief(opts ...grpc.CallOption) codes.Code {
	ctx, cancel := context.WithTimeout(c.lab.ctx, 100*time.Millisecond)
	defer cancel()
	_, err := c.Unary(ctx, opts...)
	return status.Code(err)
}

// unavailable checks that RPCs fail now, and returns what they say.
func (c *channel) unavailable() error {
	c.lab.Helper()
	ctx, cancel := context.WithTimeout(c.lab.ctx, 10*time.Second)
	defer cancel()
	_, err := c.Unary(ctx)
	require.Equal(c.lab, codes.Unavailable, status.Code(err), "%v", err)
	return err
}

// background is unary RPCs at a steady rate.
type background struct {
	done   atomic.Int64
	failed atomic.Int64
	first  atomic.Pointer[error]
	end    chan struct{}
	ended  sync.WaitGroup
}

func (c *channel) background(every, deadline time.Duration) *background {
	b := &background{end: make(chan struct{})}
	b.ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-b.end:
				return
			case <-tick.C:
				b.ended.Go(func() { b.call(c, deadline) })
			}
		}
	})
	return b
}

func (b *background) call(c *channel, deadline time.Duration) {
	ctx, cancel := context.WithTimeout(c.lab.ctx, deadline)
	defer cancel()
	var to peer.Peer
	if _, err := c.Unary(ctx, grpc.Peer(&to)); err != nil {
		err = fmt.Errorf("at %v: %w", to.Addr, err)
		b.failed.Add(1)
		b.first.CompareAndSwap(nil, &err)
	}
	b.done.Add(1)
}

// stop ends it and checks that no RPC failed.
func (b *background) stop(l *lab) {
	l.Helper()
	close(b.end)
	b.ended.Wait()
	if err := b.first.Load(); err != nil {
		require.NoError(l, *err, "%d of %d RPCs failed", b.failed.Load(), b.done.Load())
	}
}

// atMostGoroutines waits until no more than so many are left.
func (l *lab) atMostGoroutines(n int) {
	l.Helper()
	l.wait(fmt.Sprintf("at most %d goroutines are left", n), func() bool { return runtime.NumGoroutine() <= n })
}

package leastconnbalancer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// twoStreams is a node that takes two streams on a connection.
func (l *lab) twoStreams(name string) *leastconntest.Node {
	l.Helper()
	return l.node(leastconntest.Options{Name: name, ServerOptions: []grpc.ServerOption{grpc.MaxConcurrentStreams(2)}})
}

// With a cap at the server's MAX_CONCURRENT_STREAMS no stream waits in a
// connection while another node has room.
func TestD57CapAtTheStreamLimit(t *testing.T) {
	l := newLab(t)
	ns := []*leastconntest.Node{l.twoStreams("a"), l.nodes("b")[0]}
	c := l.dialWith(leastconntest.ChannelConfig{Endpoints: limited(ns, 2, -1)}, ns...)
	held, err := c.OpenTogether(l.within(5*time.Second), 12)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 2, "b": 10}, leastconntest.Counts(held))
	l.served(ns, 2, 10)
	for range 20 {
		held = endOne(t, held, ns[0])
		more, by := c.hold(1)
		require.Equal(t, map[string]int{"a": 1}, by)
		held = append(held, more...)
	}
	c.counts(ns, 2, 10)
}

// Without a cap, RPCs wait in the connection, and count there.
func TestD57WithoutACap(t *testing.T) {
	l := newLab(t)
	ns := []*leastconntest.Node{l.twoStreams("a"), l.nodes("b")[0]}
	c := l.dial(ns...)
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	var opened sync.WaitGroup
	for range 12 {
		opened.Go(func() {
			if s, err := c.Open(ctx); err == nil {
				<-ctx.Done()
				s.Cancel()
			}
		})
	}
	l.wait("half of the streams are meant for a", func() bool { n, _ := c.inFlight(ns[0]); return n == 6 && c.snapshot().InFlight == 12 })
	l.served(ns, 2, 6)
	cancel()
	opened.Wait()
}

// Where all nodes have such limits, RPCs wait in the policy, and none hangs.
func TestD57AllAtTheStreamLimit(t *testing.T) {
	l := newLab(t)
	ns := []*leastconntest.Node{l.twoStreams("a"), l.twoStreams("b"), l.twoStreams("c")}
	c := l.dialWith(guarded(capped(2)), ns...)
	stop := c.watch(atMost(2))
	var callers sync.WaitGroup
	for i := range 30 {
		callers.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(l.ctx, 20*time.Second)
				s, err := c.Open(ctx)
				if assert.NoError(t, err) {
					if i%3 == 0 {
						s.Cancel()
					} else {
						assert.NoError(t, s.End())
					}
				}
				cancel()
			}
		})
	}
	callers.Wait()
	stop()
	c.counts(ns, 0, 0, 0)
	_, err := c.Unary(l.ctx)
	require.Equal(t, codes.OK, codeOf(err))
}

package leastconnbalancer_test

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// exchange is a stream on which both sides talk all the time.
type exchange struct {
	node           string
	sent, received atomic.Int64
	quit           chan struct{}
	over           sync.WaitGroup
	err            error // once over, nil when both sides have ended it
}

// exchange opens a stream that sends a message at each tick, without waiting for
// the answers.
func (c *channel) exchange(tick time.Duration) *exchange {
	c.lab.Helper()
	ctx, cancel := context.WithCancel(c.lab.ctx)
	s, err := c.Client().FullDuplexCall(ctx)
	require.NoError(c.lab, err)
	_, err = s.Recv() // the acknowledgement
	require.NoError(c.lab, err)
	header, err := s.Header()
	require.NoError(c.lab, err)
	e := &exchange{node: header.Get(leastconntest.NodeHeader)[0], quit: make(chan struct{})}
	e.over.Go(func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if s.Send(&grpc_testing.StreamingOutputCallRequest{}) != nil {
					return // the receiver learns why
				}
				e.sent.Add(1)
			case <-e.quit:
				_ = s.CloseSend()
				return
			}
		}
	})
	e.over.Go(func() {
		defer cancel()
		for {
			if _, e.err = s.Recv(); e.err != nil {
				break
			}
			e.received.Add(1)
		}
		if e.err == io.EOF {
			e.err = nil
		}
	})
	return e
}

// end ends the exchange and checks that no message is lost.
func (e *exchange) end(l *lab) {
	l.Helper()
	close(e.quit)
	e.over.Wait()
	require.NoError(l, e.err, "at %s", e.node)
	require.Equal(l, e.sent.Load(), e.received.Load(), "answers from %s", e.node)
}

// goOn waits until on each exchange some more messages have come.
func (l *lab) goOn(all []*exchange) {
	l.Helper()
	before := make([]int64, len(all))
	for i, e := range all {
		before[i] = e.received.Load()
	}
	for i, e := range all {
		l.wait("more messages from "+e.node, func() bool { return e.received.Load() > before[i]+3 })
	}
}

// Streams that talk do not notice that the list changes under them; those of a
// node that has left end when they want to.
func TestD83StreamsTalkOnWhileTheListChanges(t *testing.T) {
	const tick = 20 * time.Millisecond
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	a, b, c, d := ns[0], ns[1], ns[2], ns[3]
	ch := l.dial(a, b)
	var all, ofB []*exchange
	for range 20 {
		e := ch.exchange(tick)
		all = append(all, e)
		if e.node == "b" {
			ofB = append(ofB, e)
		}
	}
	ch.counts(ns, 10, 10, 0, 0)
	for _, list := range [][]*leastconntest.Node{
		{a, b, c}, {a, c}, {a, c, d}, {a, b, c, d}, {c, d, a}, // b leaves, is back and leaves again
	} {
		ch.update(list...)
		l.goOn(all)
		ch.counts(ns, 10, 10, 0, 0)
	}
	for _, weights := range [][]uint32{{1, 5, 2}, {0, 1, 0}, {7, 7, 1}, {1, 1, 1}} {
		require.NoError(t, ch.UpdateState(weighings[0].state([]*leastconntest.Node{a, c, d}, weights...)))
		l.goOn(all)
		ch.counts(ns, 10, 10, 0, 0)
	}
	for range 20 {
		all = append(all, ch.exchange(tick))
	}
	l.served(ns, 10, 10, 10, 10)

	for i, e := range ofB {
		e.end(l)
		left, _ := ch.inFlight(b)
		require.Equal(t, len(ofB)-1-i, left)
	}
	_, known := ch.inFlight(b)
	require.False(t, known, "a departed node without streams is forgotten")
	l.wait("the connection of the streams at b is closed", func() bool { return b.OpenConns() <= 1 })
	l.goOn(slices.DeleteFunc(slices.Clone(all), func(e *exchange) bool { return e.node == "b" }))
	for _, e := range all {
		if e.node != "b" {
			e.end(l)
		}
	}
	ch.counts(ns, 0, 0, 0, 0)
	l.conns([]*leastconntest.Node{a, c, d}, 1, 1, 1)
}

package leastconntest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// gRPC keeps to the limit that a node tells, from the first RPC on a connection and whenever it changes, also while the
// node sends other things.
func TestNodeTellsItsStreamLimit(t *testing.T) {
	a := startNodes(t, leastconntest.Options{}, "a")[0]
	a.SetStreamLimit(2)
	c := dial(t, a)
	open := make(chan *leastconntest.Stream, 20)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range cap(open) {
		go func() {
			if s, err := c.Open(ctx); err == nil {
				open <- s
			}
		}()
	}
	live := func(want int) {
		t.Helper()
		require.NoError(t, a.WaitLive(t.Context(), want))
		bounded, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		require.Error(t, leastconntest.WaitFor(bounded, "more than the limit", func() bool { return a.Live() > want }))
	}
	live(2)
	a.SetStreamLimit(5)
	live(5)
	for limit := range uint32(200) { // it pings meanwhile
		a.SetStreamLimit(5 - limit%2)
		if limit%10 == 0 {
			s := <-open
			require.NoError(t, s.Ping())
			open <- s
		}
	}
	live(5)
	a.SetStreamLimit(1 << 31)
	live(20)
	a.SetStreamLimit(0)
	bounded, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	require.NoError(t, leastconntest.WaitFor(t.Context(), "RPCs to wait", func() bool {
		_, err := c.Unary(bounded)
		return err != nil
	}))
	a.GoAway()
	require.NoError(t, leastconntest.WaitFor(t.Context(), "a new connection", func() bool { return a.Conns() == 2 }))
	require.NoError(t, a.WaitLive(t.Context(), 20))
}

// Large messages are sent in many frames; a limit comes between two of them.
func TestStreamLimitWithinLargeMessages(t *testing.T) {
	a := startNodes(t, leastconntest.Options{}, "a")[0]
	c := dial(t, a)
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		for limit := uint32(10); ; limit++ {
			select {
			case <-over:
				return
			default:
				a.SetStreamLimit(limit)
			}
		}
	})
	for range 8 {
		response, err := c.Client().UnaryCall(t.Context(), &grpc_testing.SimpleRequest{ResponseSize: 1 << 20})
		require.NoError(t, err)
		require.Len(t, response.GetPayload().GetBody(), 1<<20)
	}
	close(over)
	telling.Wait()
}

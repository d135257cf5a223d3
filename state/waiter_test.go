package state_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// neverEnds is a context that nobody can end.
type neverEnds struct{ context.Context }

func (neverEnds) Done() <-chan struct{} { return nil }

// bubble runs a test of busy endpoints whose contexts' ends have been taken
// notice of when synctest.Wait returns.
func bubble(t *testing.T, test func(e *env), addrs ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(busyEnv(t, addrs...)) })
}

// What was granted to an RPC that ends goes on to the next, in any endpoint set.
func TestRPCEndsWithAGrant(t *testing.T) {
	bubble(t, func(x *env) {
		y := newEnvOn(x.T, x.ledger)
		y.guard(state.Guards{})
		y.capped(1, "a")
		rs := append(x.queued(2), y.queued(1)...)
		rs = append(rs, x.queued(1)...)
		x.end("a", 1)
		for i := range 3 {
			require.Equal(t, 3-i, x.waiting())
			rs[i].cancel()
			require.Equal(t, map[string]int{"a": 1}, x.loads())
		}
		require.Equal(t, state.Chosen, rs[3].acquire())
		rs[3].cancel()
		require.Equal(t, map[string]int{"a": 1}, x.loads(), "it has its lease itself")
		rs[3].finish()
		require.Equal(t, map[string]int{"a": 0}, x.loads())
	}, "a")
}

// An RPC that has ended already does not stay.
func TestRPCThatHasEnded(t *testing.T) {
	bubble(t, func(e *env) {
		r := e.rpc()
		r.end()
		require.Equal(t, state.Queued, r.acquire())
		synctest.Wait()
		require.Zero(t, e.waiting())
		e.end("a", 1)
		require.Equal(t, map[string]int{"a": 0}, e.loads())
	}, "a")
}

// watched is a context that tells how many wait for its end.
type watched struct {
	context.Context
	done    chan struct{}
	watches int
	during  func() // happens as the watch begins
}

func newWatched() *watched {
	return &watched{context.Background(), make(chan struct{}), 0, func() {}}
}

func (w *watched) Done() <-chan struct{} { return w.done }

// AfterFunc is what context.AfterFunc calls.
func (w *watched) AfterFunc(func()) (stop func() bool) {
	w.watches++
	w.during()
	return func() bool {
		w.watches--
		return true
	}
}

// A waiter watches its RPC's end as long as there is a waiter.
func TestWaiterEndsItsWatch(t *testing.T) {
	e := busyEnv(t, "a")
	ctxs := []*watched{newWatched(), newWatched()}
	acquire := func(i int, want state.Outcome, watches int) {
		t.Helper()
		lease, _, outcome := e.endpointSet.AcquireOrQueue(ctxs[i], nil, e.readySet)
		require.Equal(t, want, outcome)
		require.Equal(t, watches, ctxs[i].watches)
		lease.Release()
	}
	for range 3 {
		acquire(0, state.Queued, 1)
		acquire(1, state.Queued, 1)
	}
	e.end("a", 1)
	acquire(0, state.Chosen, 0)
	acquire(1, state.Chosen, 0)
	acquire(0, state.Chosen, 0)
	e.open()
	acquire(0, state.Queued, 1)
	e.endpointSet.Close()
	require.Zero(t, ctxs[0].watches)
}

// A waiter may be gone before its watch has begun.
func TestWaiterGoesBeforeItsWatch(t *testing.T) {
	for name, tc := range map[string]func(e *env, again func() state.Outcome){
		"closed": func(e *env, _ func() state.Outcome) { e.endpointSet.Close() },
		"served": func(e *env, again func() state.Outcome) {
			e.end("a", 1)
			require.Equal(e, state.Chosen, again())
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := busyEnv(t, "a")
			ctx := newWatched()
			acquire := func() state.Outcome {
				lease, _, outcome := e.endpointSet.AcquireOrQueue(ctx, nil, e.readySet)
				lease.Release()
				return outcome
			}
			ctx.during = func() { tc(e, acquire) }
			require.Equal(t, state.Queued, acquire())
			require.Zero(t, ctx.watches)
			require.Zero(t, e.waiting())
		})
	}
}

// Who waits costs no goroutine.
func TestWaitersHaveNoGoroutines(t *testing.T) {
	e := busyEnv(t, "a")
	before := runtime.NumGoroutine()
	e.queued(1000)
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), "%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}

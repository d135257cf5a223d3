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
func bubble(t *testing.T, test func(s *site), addrs ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(busySite(t, addrs...)) })
}

// cancel ends an RPC's context.
func (r *rpc) cancel() {
	r.Helper()
	r.end()
	synctest.Wait()
	require.NoError(r, r.ledger.Check())
}

// Who does not wait any more is passed over.
func TestRPCEndsWhileItWaits(t *testing.T) {
	bubble(t, func(s *site) {
		rs := s.queued(5)
		for _, i := range []int{0, 2, 4} {
			rs[i].cancel()
		}
		require.Equal(t, 2, s.waiting())
		s.end("a", 1)
		require.Equal(t, state.Chosen, rs[1].turn())
		rs[1].finish()
		require.Equal(t, state.Chosen, rs[3].turn())
		require.Zero(t, s.waiting())
	}, "a")
}

// What was granted to an RPC that ends goes on to the next, in any endpoint set.
func TestRPCEndsWithAGrant(t *testing.T) {
	bubble(t, func(x *site) {
		y := newSiteOn(x.T, x.ledger)
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
		require.Equal(t, state.Chosen, rs[3].turn())
		rs[3].cancel()
		require.Equal(t, map[string]int{"a": 1}, x.loads(), "it has its lease itself")
		rs[3].finish()
		require.Equal(t, map[string]int{"a": 0}, x.loads())
	}, "a")
}

// An RPC that has ended already does not stay.
func TestRPCThatHasEnded(t *testing.T) {
	bubble(t, func(s *site) {
		r := s.rpc()
		r.end()
		require.Equal(t, state.Queued, r.turn())
		synctest.Wait()
		require.Zero(t, s.waiting())
		s.end("a", 1)
		require.Equal(t, map[string]int{"a": 0}, s.loads())
	}, "a")
}

// An endpoint set that closes ends its tickets: others get the room.
func TestRosterClosesWithTickets(t *testing.T) {
	bubble(t, func(x *site) {
		y := newSiteOn(x.T, x.ledger)
		y.guard(state.Guards{})
		y.capped(1, "a", "b", "c")
		mine, theirs := x.queued(5), y.queued(3)
		x.end("a", 1)
		x.end("b", 1)
		require.Equal(t, 6, x.waiting())
		x.roster.Close()
		require.NoError(t, x.ledger.Check())
		require.Equal(t, 1, x.waiting(), "of y")
		require.Equal(t, []int{0, 1}, granted(theirs))
		for _, r := range mine {
			require.Equal(t, state.Empty, r.turn(), "it has no ticket")
			r.cancel()
		}
		x.end("c", 1)
		require.Equal(t, []int{2}, granted(theirs))
		require.Zero(t, x.waiting())
	}, "a", "b", "c")
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

// A ticket watches its RPC's end as long as there is a ticket.
func TestTicketEndsItsWatch(t *testing.T) {
	s := busySite(t, "a")
	ctxs := []*watched{newWatched(), newWatched()}
	turn := func(i int, want state.Outcome, watches int) {
		t.Helper()
		lease, _, outcome := s.roster.AcquireOrQueue(ctxs[i], nil, s.view)
		require.Equal(t, want, outcome)
		require.Equal(t, watches, ctxs[i].watches)
		lease.Release()
	}
	for range 3 {
		turn(0, state.Queued, 1)
		turn(1, state.Queued, 1)
	}
	s.end("a", 1)
	turn(0, state.Chosen, 0)
	turn(1, state.Chosen, 0)
	turn(0, state.Chosen, 0)
	s.open()
	turn(0, state.Queued, 1)
	s.roster.Close()
	require.Zero(t, ctxs[0].watches)
}

// A ticket may be gone before its watch has begun.
func TestTicketGoesBeforeItsWatch(t *testing.T) {
	for name, tc := range map[string]func(s *site, again func() state.Outcome){
		"closed": func(s *site, _ func() state.Outcome) { s.roster.Close() },
		"served": func(s *site, again func() state.Outcome) {
			s.end("a", 1)
			require.Equal(s, state.Chosen, again())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := busySite(t, "a")
			ctx := newWatched()
			turn := func() state.Outcome {
				lease, _, outcome := s.roster.AcquireOrQueue(ctx, nil, s.view)
				lease.Release()
				return outcome
			}
			ctx.during = func() { tc(s, turn) }
			require.Equal(t, state.Queued, turn())
			require.Zero(t, ctx.watches)
			require.Zero(t, s.waiting())
		})
	}
}

// Who waits costs no goroutine.
func TestTicketsHaveNoGoroutines(t *testing.T) {
	s := busySite(t, "a")
	before := runtime.NumGoroutine()
	rs := s.queued(1000)
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
		require.True(t, time.Now().Before(deadline), "%d goroutines, %d before", runtime.NumGoroutine(), before)
		runtime.Gosched()
	}
	for _, r := range rs {
		r.end()
	}
	for deadline := time.Now().Add(10 * time.Second); s.waiting() > 0; {
		require.True(t, time.Now().Before(deadline))
		runtime.Gosched()
	}
}

package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// busySite has endpoints with caps of 1, all of them busy.
func busySite(t *testing.T, addrs ...string) *site {
	s := newSite(t)
	s.guard(state.Guards{})
	s.capped(1, addrs...)
	s.openMany(len(addrs))
	return s
}

// Who waits longest is served first, one for each release.
func TestRoomGoesToTheFirstInLine(t *testing.T) {
	s := newSite(t)
	s.guard(state.Guards{})
	s.capped(2, "a", "b")
	s.openMany(4)
	rs := s.queued(5)
	require.Equal(t, 5, s.waiting())
	require.Empty(t, granted(rs))
	for i, a := range []string{"b", "a", "a", "b"} {
		s.end(a, 1)
		require.Equal(t, 4-i, s.waiting())
		require.Equal(t, []int{i}, granted(rs))
		require.Equal(t, a, rs[i].on)
	}
	rs[0].finish()
	require.Equal(t, []int{4}, granted(rs))
	require.Zero(t, s.waiting())
	require.EqualValues(t, 5, s.ledger.Snapshot().EndpointSets[0].Queued)
}

// What is granted is in flight from that moment on: nobody gets it as well.
func TestGrantedRoomIsTaken(t *testing.T) {
	s := busySite(t, "a")
	rs := s.queued(2)
	s.end("a", 1)
	require.Equal(t, map[string]int{"a": 1}, s.loads())
	require.Equal(t, 1, s.waiting())
	_, _, ok := s.view.Acquire()
	require.False(t, ok)
	late := s.rpc()
	require.Equal(t, state.Queued, late.turn())
	require.Equal(t, state.Queued, rs[1].turn())
	require.Equal(t, state.Chosen, rs[0].turn())
	rs[0].finish()
	require.Equal(t, state.Queued, late.turn())
	require.Equal(t, state.Chosen, rs[1].turn())
}

// While RPCs have tickets, Acquire is for none: they would be overtaken.
func TestAcquireGivesWay(t *testing.T) {
	s := busySite(t, "a", "b")
	rs := s.queued(1)
	s.end("a", 1)
	s.end("b", 1) // which nobody waits for
	_, _, ok := s.view.Acquire()
	require.False(t, ok)
	other := s.rpc()
	require.Equal(t, state.Chosen, other.turn())
	require.Equal(t, "b", other.on)
	require.Equal(t, []int{0}, granted(rs))
	other.finish()
	require.Equal(t, "b", s.open())
}

// An RPC that waits has one ticket, however often it asks.
func TestOneTicketOfAnRPC(t *testing.T) {
	s := busySite(t, "a")
	r := s.queued(1)[0]
	for range 3 {
		require.Equal(t, state.Queued, r.turn())
	}
	require.Equal(t, 1, s.waiting())
	s.end("a", 1)
	require.Equal(t, state.Chosen, r.turn())
	require.Equal(t, state.Queued, r.turn(), "a later attempt of it")
	require.Equal(t, 1, s.waiting())
}

// The endpoint sets of a ledger have one line: room on an endpoint goes to whoever came
// first, wherever.
func TestOneLineForAllRosters(t *testing.T) {
	x := busySite(t, "a")
	y, z := newSiteOn(t, x.ledger), newSiteOn(t, x.ledger)
	for _, s := range []*site{y, z} {
		s.guard(state.Guards{})
		s.capped(1, "a")
	}
	var rs []*rpc
	for _, s := range []*site{y, x, x, z, y, x, z, z, y} {
		rs = append(rs, s.queued(1)...)
	}
	x.end("a", 1)
	for i := range rs {
		require.Equal(t, []int{i}, granted(rs))
		require.Equal(t, len(rs)-1-i, x.waiting())
		rs[i].finish()
	}
}

// Who came first and cannot use the room does not hold it up.
func TestRoomForWhoCanUseIt(t *testing.T) {
	x := busySite(t, "a", "b")
	y := newSiteOn(t, x.ledger)
	y.guard(state.Guards{})
	y.capped(1, "b")
	rs := append(x.queued(1), y.queued(1)...)
	x.members["b"].SetMaxInFlight(0)
	require.Equal(t, []int{0}, granted(rs), "x has no cap on b any more")
	require.Equal(t, "b", rs[0].on)
	x.view.Remove(x.members["b"])
	rs = append(x.queued(1), rs[1])
	x.end("b", 1)
	require.Empty(t, granted(rs), "one of x is in flight on b")
	x.leases["b"][0].Release()
	x.leases["b"] = nil
	require.Equal(t, []int{1}, granted(rs))
}

func TestQueueIsBound(t *testing.T) {
	s := newSite(t)
	s.roster.SetGuards(state.Guards{MaxQueued: 2})
	s.capped(1, "a")
	s.open()
	rs := s.queued(2)
	refused := s.rpc()
	for range 3 {
		require.Equal(t, state.Refused, refused.turn())
	}
	require.Equal(t, state.Queued, rs[0].turn(), "it has its place")
	s.end("a", 1)
	require.Equal(t, state.Queued, refused.turn(), "what is granted does not wait")
	require.Equal(t, 2, s.waiting())
	require.EqualValues(t, 3, s.ledger.Snapshot().EndpointSets[0].Queued)

	s.roster.SetGuards(state.Guards{})
	require.Equal(t, state.Refused, s.rpc().turn())
	require.Equal(t, state.Queued, rs[1].turn(), "who waits already goes on")
	require.Equal(t, state.Chosen, rs[0].turn())
	rs[0].finish()
	require.Equal(t, state.Chosen, rs[1].turn())
}

// An RPC that nothing tells from others cannot wait.
func TestRPCWithoutAnEnd(t *testing.T) {
	s := busySite(t, "a")
	for range 3 {
		_, _, outcome := s.roster.AcquireOrQueue(nobody, nil, s.view)
		require.Equal(t, state.Refused, outcome)
		_, _, outcome = s.roster.AcquireOrQueue(neverEnds{}, nil, s.view)
		require.Equal(t, state.Refused, outcome)
	}
	require.Zero(t, s.waiting())
	s.end("a", 1)
	lease, value, outcome := s.roster.AcquireOrQueue(neverEnds{}, nil, s.view)
	require.Equal(t, state.Chosen, outcome)
	require.Equal(t, "a", value)
	require.True(t, lease.Release())
}

// Each thing that makes room gives it to those that wait, in the same step.
func TestWhatMakesRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		make    func(s *site)
		granted int
	}{
		"release":          {func(s *site) { s.end("a", 1) }, 1},
		"failure":          {func(s *site) { s.fail("a", 1) }, 1},
		"higher cap":       {func(s *site) { s.members["a"].SetMaxInFlight(3) }, 2},
		"no cap":           {func(s *site) { s.members["a"].SetMaxInFlight(0) }, 5},
		"new node":         {func(s *site) { s.capped(3, "c") }, 3},
		"node is ready":    {func(s *site) { s.set("d", 1) }, 5},
		"node drained":     {func(s *site) { s.set("e", 1) }, 5},
		"another level":    {func(s *site) { s.roster.SetQueueSets(s.view, s.second) }, 4},
		"only one level":   {func(s *site) { s.roster.SetQueueSets(s.second) }, 4},
		"lower cap":        {func(s *site) { s.members["a"].SetMaxInFlight(1) }, 0},
		"not ready":        {func(s *site) { s.view.Remove(s.members["a"]) }, 0},
		"weight":           {func(s *site) { s.set("a", 5) }, 0},
		"level that drops": {func(s *site) { s.roster.SetQueueSets(s.view) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := busySite(t, "a", "b")
			s.list("d", "e", "y")
			s.set("e", 0)
			s.second = s.roster.NewReadySet(1)
			s.members["y"].SetMaxInFlight(4)
			s.second.Set(s.members["y"], 1, "y")
			rs := s.queued(5)
			tc.make(s)
			require.NoError(t, s.ledger.Check())
			require.Equal(t, 5-tc.granted, s.waiting())
			require.Equal(t, []int{0, 1, 2, 3, 4}[:tc.granted], append([]int{}, granted(rs)...))
		})
	}
}

// An RPC may ask with the ready sets of a picker that is out of date: where the
// endpoint set is served by now is what counts. Nobody else would tell it.
func TestTurnWithOldViews(t *testing.T) {
	s := busySite(t, "a")
	now := s.roster.NewReadySet(1)
	s.list("b")
	now.Set(s.members["b"], 1, "b")
	s.roster.SetQueueSets(now)
	r := s.rpc()
	require.Equal(t, state.Chosen, r.turn(s.view))
	require.Equal(t, "b", r.on)
	s.roster.SetGuards(state.Guards{})
	require.Equal(t, state.Chosen, s.rpc().turn(s.view), "nor need it wait for that")
}

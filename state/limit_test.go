package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// full returns the endpoints that are at their caps.
func (s *site) full() []string {
	var full []string
	for _, n := range s.ledger.Snapshot().Endpoints {
		for _, m := range n.Members {
			if m.EndpointSet == s.name && m.Full {
				full = append(full, n.Addresses[0])
			}
		}
	}
	return full
}

// requireFull asserts that nobody may be chosen, and that caps are the reason.
func (s *site) requireFull() {
	s.Helper()
	require.NoError(s, s.ledger.Check())
	_, _, ok := s.view.Acquire()
	require.False(s, ok)
	_, _, outcome := s.roster.AcquireOrQueue(nobody, nil, s.view)
	require.Equal(s, state.Refused, outcome)
}

// An endpoint at its cap is not chosen, however empty it looks by its weight; one
// below it is.
func TestCapIsExact(t *testing.T) {
	s := newSite(t)
	s.capped(2, "a", "b")
	s.set("a", 100)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, s.openMany(4))
	require.Equal(t, []string{"a", "b"}, s.full())
	for range 20 {
		s.requireFull()
		s.end("b", 1)
		require.Equal(t, []string{"a"}, s.full())
		require.Equal(t, "b", s.open())
	}
	s.end("b", 2)
	s.end("a", 1)
	require.Empty(t, s.full())
	require.Equal(t, map[string]int{"a": 1, "b": 2}, s.openMany(3))
	s.requireFull()
}

func TestD57CapSteersAround(t *testing.T) {
	s := newSite(t)
	s.add("a", "b")
	s.members["a"].SetMaxInFlight(2)
	require.Equal(t, map[string]int{"a": 2, "b": 10}, s.openMany(12))
}

// A cap that changes counts from the next choice on, whatever is in flight.
func TestCapChanges(t *testing.T) {
	s := newSite(t)
	s.add("a", "b")
	s.openMany(10)
	for _, m := range s.members {
		m.SetMaxInFlight(2)
	}
	s.requireFull()
	for range 3 {
		s.end("a", 1)
		s.requireFull()
	}
	s.end("a", 1)
	require.Equal(t, "a", s.open())
	s.requireFull()

	s.members["b"].SetMaxInFlight(6)
	require.Equal(t, "b", s.open())
	s.requireFull()
	s.members["b"].SetMaxInFlight(0)
	require.Equal(t, map[string]int{"b": 20}, s.openMany(20))
	require.Equal(t, []string{"a"}, s.full())
	s.members["a"].SetMaxInFlight(0)
	require.Equal(t, "a", s.open())
}

// The count belongs to the endpoint: what leaves and comes back is as full as it
// was.
func TestCapOfANodeThatFlaps(t *testing.T) {
	s := newSite(t)
	s.capped(2, "a", "b")
	s.openMany(4)
	for range 3 {
		s.view.Remove(s.members["a"])
		require.Equal(t, []string{"b"}, s.full(), "not ready is not full")
		s.requireFull()
		s.set("a", 0)
		require.Equal(t, []string{"b"}, s.full(), "nor is draining")
		s.requireFull()
		s.set("a", 1)
		require.Equal(t, []string{"a", "b"}, s.full())
		s.requireFull()
	}
	s.view.Remove(s.members["a"])
	s.end("a", 1)
	s.set("a", 1)
	require.Equal(t, "a", s.open())
	s.remove("a")
	s.requireFull()
	s.list("a")
	s.members["a"].SetMaxInFlight(3)
	s.set("a", 1)
	require.Equal(t, "a", s.open())
	s.requireFull()
}

// Nobody may be chosen, and no cap is the reason.
func TestEmptyIsNotFull(t *testing.T) {
	s := newSite(t)
	turn := func() state.Outcome {
		_, _, outcome := s.roster.AcquireOrQueue(t.Context(), nil, s.view)
		return outcome
	}
	s.guard(state.Guards{})
	require.Equal(t, state.Empty, turn())
	s.capped(1, "a")
	s.open()
	s.set("a", 0)
	require.Equal(t, state.Empty, turn())
	s.view.Remove(s.members["a"])
	require.Equal(t, state.Empty, turn())
	s.set("a", 1)
	require.Equal(t, state.Queued, turn())
}

// Two endpoint sets have different caps on one endpoint: each keeps its own, of what both
// have in flight there.
func TestCapsOfTwoRosters(t *testing.T) {
	x := newSite(t)
	y := newSiteOn(t, x.ledger)
	x.capped(2, "a")
	y.capped(4, "a")
	y.openMany(1)
	require.Equal(t, "a", x.open())
	x.requireFull()
	y.openMany(2)
	y.requireFull()
	y.end("a", 2)
	x.requireFull()
	y.end("a", 1)
	require.Equal(t, "a", x.open())
	x.requireFull()
	require.Equal(t, map[string]int{"a": 2}, x.loads())
	x.members["a"].SetMaxInFlight(8)
	x.openMany(6)
	x.requireFull()
	y.requireFull()
	x.end("a", 5)
	y.openMany(1)
	y.requireFull()
}

// One endpoint with two addresses is one endpoint with one cap.
func TestD64CapIsOfTheEndpoint(t *testing.T) {
	s := newSite(t)
	m := s.roster.Update(nil, []state.Identity{{Addrs: []string{"127.0.0.1:1", "[::1]:1"}}})[0]
	m.SetMaxInFlight(1)
	s.view.Set(m, 1, "a")
	y := newSiteOn(t, s.ledger)
	other := y.roster.Update(nil, []state.Identity{{Addrs: []string{"[::1]:1", "127.0.0.1:1"}}})[0]
	other.SetMaxInFlight(1)
	y.view.Set(other, 1, "a")
	s.open()
	s.requireFull()
	y.requireFull()
}

// A cap is the member's: it holds before it is ready, in whatever ready set.
func TestCapStaysWithTheMember(t *testing.T) {
	s := newSite(t)
	s.list("a")
	s.members["a"].SetMaxInFlight(1)
	s.set("a", 1)
	s.open()
	s.requireFull()
	second := s.roster.NewReadySet(1)
	second.Set(s.members["a"], 1, "a")
	_, _, outcome := s.roster.AcquireOrQueue(nobody, nil, second)
	require.Equal(t, state.Refused, outcome)
	_, _, outcome = s.roster.AcquireOrQueue(nobody, nil, s.view, second)
	require.Equal(t, state.Empty, outcome, "the first view has nobody, full or not")
	s.end("a", 1)
	_, _, ok := second.Acquire()
	require.True(t, ok)
	gone := s.members["a"]
	s.remove("a")
	gone.SetMaxInFlight(7) // passed over
	require.NoError(t, s.ledger.Check())
}

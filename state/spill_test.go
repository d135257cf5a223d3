package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// levels is a site with two priority levels: a and b in the first, y and z in
// the second, all with a cap of 2.
func newLevels(t *testing.T) (s *site, second *state.ReadySet) {
	s = newSite(t)
	s.guard(state.Guards{})
	s.capped(2, "a", "b")
	second = s.roster.NewReadySet(1)
	s.list("y", "z")
	for _, a := range []string{"y", "z"} {
		s.members[a].SetMaxInFlight(2)
		second.Set(s.members[a], 1, a)
	}
	return s, second
}

// fill has n RPCs take their turn, and returns where they go.
func (s *site) fill(n int, views ...*state.ReadySet) map[string]int {
	s.Helper()
	got := map[string]int{}
	for range n {
		r := s.rpc()
		require.Equal(s, state.Chosen, r.turn(views...))
		got[r.on]++
	}
	return got
}

// The second level gets what the first has no room for, and nothing else.
func TestD94SpillToTheSecondLevel(t *testing.T) {
	s, second := newLevels(t)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, s.fill(4, s.view, second))
	s.fill(3, s.view, second)
	s.end("a", 1)
	require.Equal(t, map[string]int{"a": 1}, s.fill(1, s.view, second), "the first has room again")
	s.fill(1, s.view, second)
	require.Equal(t, map[string]int{"a": 2, "b": 2, "y": 2, "z": 2}, s.loads())
	r := s.rpc()
	require.Equal(t, state.Queued, r.turn(s.view, second))
	s.end("y", 1)
	require.Equal(t, state.Chosen, r.turn(s.view, second))
	require.Equal(t, "y", r.on)
}

// Without anybody at a cap the first level alone counts, even when it is empty.
func TestNoSpillWithoutACap(t *testing.T) {
	s, second := newLevels(t)
	for _, a := range []string{"a", "b"} {
		s.set(a, 0)
	}
	require.Equal(t, state.Empty, s.rpc().turn(s.view, second))
	s.set("a", 1)
	s.fill(2, s.view, second)
	require.Len(t, s.fill(1, s.view, second), 1, "one drains, one is full")
	s.view.Remove(s.members["a"])
	require.Equal(t, state.Empty, s.rpc().turn(s.view, second))
}

// A retry goes to another endpoint, in a lower level if need be, before it starts
// over.
func TestRetrySpills(t *testing.T) {
	s, second := newLevels(t)
	s.fill(3, s.view, second)
	tried := new(state.Tried)
	for a := range s.leases {
		tried.Add(s.leases[a][0])
	}
	turn := func() string {
		lease, value, outcome := s.roster.AcquireOrQueue(t.Context(), tried, s.view, second)
		require.Equal(t, state.Chosen, outcome)
		a := value.(string)
		s.leases[a] = append(s.leases[a], lease)
		return a
	}
	s.end("b", len(s.leases["b"])-1)
	first := turn()
	require.Contains(t, []string{"y", "z"}, first, "a and b were tried")
	tried.Add(s.leases[first][0])
	other := turn()
	require.Contains(t, []string{"y", "z"}, other)
	require.NotEqual(t, first, other)
	require.EqualValues(t, 2, s.ledger.Snapshot().EndpointSets[0].RetriesToOtherEndpoint)
	require.False(t, tried.Empty())
	tried.Add(s.leases[other][0])
	require.Contains(t, []string{"a", "b"}, turn(), "it starts over")
	require.True(t, tried.Empty())
	require.EqualValues(t, 2, s.ledger.Snapshot().EndpointSets[0].RetriesToOtherEndpoint)
}

// Three levels: the third is for what the second lacks, too.
func TestSpillToTheThirdLevel(t *testing.T) {
	s, second := newLevels(t)
	third := s.roster.NewReadySet(2)
	s.list("k")
	third.Set(s.members["k"], 1, "k")
	s.fill(4, s.view, second, third)
	second.Remove(s.members["y"])
	second.Remove(s.members["z"])
	require.Equal(t, map[string]int{"k": 1}, s.fill(1, s.view, second, third), "the second is empty")
	second.Set(s.members["y"], 1, "y")
	require.Equal(t, map[string]int{"y": 2}, s.fill(2, s.view, second, third))
	require.Equal(t, map[string]int{"k": 5}, s.fill(5, s.view, second, third))
}

package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// A closed endpoint set stays empty, whatever it is told; its leases still land.
func TestClosedRoster(t *testing.T) {
	s := newSite(t)
	s.add("a", "b")
	s.openMany(4)
	s.roster.Close()
	s.roster.Close()

	_, _, ok := s.view.Acquire()
	require.False(t, ok)
	s.set("a", 3)
	s.view.Remove(s.members["a"])
	late := s.roster.NewReadySet(1)
	late.Set(s.members["a"], 1, "a")
	joined := s.roster.Update([]*state.Member{s.members["b"]}, []state.Identity{{Addrs: []string{"c"}}, {Addrs: []string{"a"}}})
	require.Len(t, joined, 2)
	for _, v := range []*state.ReadySet{s.view, late} {
		_, _, ok = v.Acquire()
		require.False(t, ok)
	}
	require.NoError(t, s.ledger.Check())
	require.Equal(t, map[string]int{"a": 2, "b": 2}, s.loads())
	s.end("a", 2)
	s.end("b", 2)
	require.Empty(t, s.loads())
	require.Same(t, s.ledger, s.roster.Ledger())
}

// What Update of a closed endpoint set returns may be given to its ready sets, as that of
// an open one may.
func TestClosedRosterMembersArePassedOver(t *testing.T) {
	s := newSite(t)
	s.roster.Close()
	for _, m := range s.roster.Update(nil, []state.Identity{{Addrs: []string{"a"}}}) {
		require.NotPanics(t, func() {
			s.view.Set(m, 1, "a")
			s.view.Remove(m)
			s.roster.Update([]*state.Member{m}, nil)
		})
	}
	_, _, ok := s.view.Acquire()
	require.False(t, ok)
}

// A member that has left is passed over by ready sets and updates.
func TestMemberThatHasLeft(t *testing.T) {
	s := newSite(t)
	s.add("a", "b")
	gone := s.members["a"]
	s.remove("a")
	s.view.Set(gone, 1, "a")
	s.view.Remove(gone)
	s.roster.Update([]*state.Member{gone}, nil)
	require.NoError(t, s.ledger.Check())
	require.Equal(t, map[string]int{"b": 3}, s.openMany(3))
}

// A member of another endpoint set is none of the ready set's.
func TestMemberOfAnotherRoster(t *testing.T) {
	x := newSite(t)
	y := newSiteOn(t, x.ledger)
	x.add("a")
	x.view.Set(x.members["a"], 1, "a")
	y.view.Set(x.members["a"], 1, "stolen")
	y.view.Remove(x.members["a"])
	_, _, ok := y.view.Acquire()
	require.False(t, ok)
	require.Equal(t, "a", x.open())
}

// A list that says the same thing several times says it once.
func TestAddressListedTwice(t *testing.T) {
	s := newSite(t)
	addrs := []string{"b", "a", "b", "a"}
	ms := s.roster.Update(nil, []state.Identity{{Addrs: addrs}})
	require.Len(t, ms, 1)
	require.Equal(t, []string{"b", "a", "b", "a"}, addrs, "the caller's slice is the caller's")
	require.Equal(t, []string{"a", "b"}, s.ledger.Snapshot().Endpoints[0].Addresses)
	addrs[0] = "c"
	require.NoError(t, s.ledger.Check())
}

// What a ready set has picked is counted when it is closed, and once.
func TestClosedViewsPicksCount(t *testing.T) {
	s := newSite(t)
	s.add("a")
	s.round(3)
	second := s.roster.NewReadySet(1)
	picks := func() uint64 { return s.roster.Counters().Picks }
	for range 2 {
		s.view.Close()
		require.EqualValues(t, 3, picks())
		require.EqualValues(t, 3, s.ledger.Snapshot().EndpointSets[0].Picks)
	}
	second.Set(s.members["a"], 1, "a")
	s.keep(second)
	require.EqualValues(t, 4, picks())
	s.roster.Close()
	second.Close()
	require.EqualValues(t, 4, picks())
}

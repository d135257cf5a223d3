package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// A closed endpoint set stays empty, whatever it is told; its leases still land.
func TestClosedEndpointSet(t *testing.T) {
	e := newEnv(t)
	e.add("a", "b")
	e.openMany(4)
	e.endpointSet.Close()
	e.endpointSet.Close()

	_, _, ok := e.readySet.Acquire()
	require.False(t, ok)
	e.set("a", 3)
	e.readySet.Remove(e.members["a"])
	late := e.endpointSet.NewReadySet(1)
	late.Set(e.members["a"], 1, "a")
	joined := e.endpointSet.Update([]*state.Member{e.members["b"]}, []state.Identity{{Addrs: []string{"c"}}, {Addrs: []string{"a"}}})
	require.Len(t, joined, 2)
	for _, v := range []*state.ReadySet{e.readySet, late} {
		_, _, ok = v.Acquire()
		require.False(t, ok)
	}
	require.NoError(t, e.ledger.Check())
	require.Equal(t, map[string]int{"a": 2, "b": 2}, e.loads())
	e.end("a", 2)
	e.end("b", 2)
	require.Empty(t, e.loads())
	require.Same(t, e.ledger, e.endpointSet.Ledger())
}

// What Update of a closed endpoint set returns may be given to its ready sets, as that of
// an open one may.
func TestMembersOfAClosedEndpointSet(t *testing.T) {
	e := newEnv(t)
	e.endpointSet.Close()
	for _, m := range e.endpointSet.Update(nil, []state.Identity{{Addrs: []string{"a"}}}) {
		require.NotPanics(t, func() {
			e.readySet.Set(m, 1, "a")
			e.readySet.Remove(m)
			e.endpointSet.Update([]*state.Member{m}, nil)
		})
	}
	_, _, ok := e.readySet.Acquire()
	require.False(t, ok)
}

// A member that has left is passed over by ready sets and updates.
func TestMemberThatHasLeft(t *testing.T) {
	e := newEnv(t)
	e.add("a", "b")
	gone := e.members["a"]
	e.remove("a")
	e.readySet.Set(gone, 1, "a")
	e.readySet.Remove(gone)
	gone.SetMaxInFlight(1)
	e.endpointSet.Update([]*state.Member{gone}, nil)
	require.NoError(t, e.ledger.Check())
	require.Equal(t, map[string]int{"b": 3}, e.openMany(3))
}

// A member of another endpoint set is none of the ready set's.
func TestMemberOfAnotherEndpointSet(t *testing.T) {
	x := newEnv(t)
	y := newEnvOn(t, x.ledger)
	x.add("a")
	x.readySet.Set(x.members["a"], 1, "a")
	y.readySet.Set(x.members["a"], 1, "stolen")
	y.readySet.Remove(x.members["a"])
	_, _, ok := y.readySet.Acquire()
	require.False(t, ok)
	require.Equal(t, "a", x.open())
}

// A list that says the same thing several times says it once.
func TestAddressListedTwice(t *testing.T) {
	e := newEnv(t)
	addrs := []string{"b", "a", "b", "a"}
	ms := e.endpointSet.Update(nil, []state.Identity{{Addrs: addrs}})
	require.Len(t, ms, 1)
	require.Equal(t, []string{"b", "a", "b", "a"}, addrs, "the caller's slice is the caller's")
	require.Equal(t, []string{"a", "b"}, e.ledger.Snapshot().Endpoints[0].Addresses)
	addrs[0] = "c"
	require.NoError(t, e.ledger.Check())
}

// What a ready set has picked is counted when it is closed, and once.
func TestPicksOfAClosedReadySet(t *testing.T) {
	e := newEnv(t)
	e.add("a")
	e.calls(3)
	second := e.endpointSet.NewReadySet(1)
	picks := func() uint64 { return e.endpointSet.Counters().Picks }
	for range 2 {
		e.readySet.Close()
		require.EqualValues(t, 3, picks())
		require.EqualValues(t, 3, e.ledger.Snapshot().EndpointSets[0].Picks)
	}
	second.Set(e.members["a"], 1, "a")
	e.keep(second)
	require.EqualValues(t, 4, picks())
	e.endpointSet.Close()
	second.Close()
	require.EqualValues(t, 4, picks())
}

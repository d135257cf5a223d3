package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// full returns the endpoints that are at their caps.
func (e *env) full() []string {
	var full []string
	for _, n := range e.ledger.Snapshot().Endpoints {
		for _, m := range n.Members {
			if m.EndpointSet == e.name && m.Full {
				full = append(full, n.Addresses[0])
			}
		}
	}
	return full
}

// requireFull asserts that nobody may be chosen, and that caps are the reason.
func (e *env) requireFull() {
	e.Helper()
	require.NoError(e, e.ledger.Check())
	_, _, ok := e.readySet.Acquire()
	require.False(e, ok)
	_, _, outcome := e.endpointSet.AcquireOrQueue(nobody, nil, e.readySet)
	require.Equal(e, state.Refused, outcome)
}

// An endpoint at its cap is not chosen, however empty it looks by its weight; one
// below it is.
func TestCapIsExact(t *testing.T) {
	e := newEnv(t)
	e.capped(2, "a", "b")
	e.set("a", 100)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, e.openMany(4))
	require.Equal(t, []string{"a", "b"}, e.full())
	for range 20 {
		e.requireFull()
		e.end("b", 1)
		require.Equal(t, []string{"a"}, e.full())
		require.Equal(t, "b", e.open())
	}
	e.end("b", 2)
	e.end("a", 1)
	require.Empty(t, e.full())
	require.Equal(t, map[string]int{"a": 1, "b": 2}, e.openMany(3))
	e.requireFull()
}

// Nobody may be chosen, and no cap is the reason.
func TestEmptyIsNotFull(t *testing.T) {
	e := newEnv(t)
	acquire := func() state.Outcome {
		_, _, outcome := e.endpointSet.AcquireOrQueue(t.Context(), nil, e.readySet)
		return outcome
	}
	e.guard(state.Guards{})
	require.Equal(t, state.Empty, acquire())
	e.capped(1, "a")
	e.open()
	e.set("a", 0)
	require.Equal(t, state.Empty, acquire())
	e.readySet.Remove(e.members["a"])
	require.Equal(t, state.Empty, acquire())
	e.set("a", 1)
	require.Equal(t, state.Queued, acquire())
}

// A cap is the member's: it holds before it is ready, in whatever ready set.
func TestCapStaysWithTheMember(t *testing.T) {
	e := newEnv(t)
	e.list("a")
	e.members["a"].SetMaxInFlight(1)
	e.set("a", 1)
	e.open()
	e.requireFull()
	second := e.endpointSet.NewReadySet(1)
	second.Set(e.members["a"], 1, "a")
	_, _, outcome := e.endpointSet.AcquireOrQueue(nobody, nil, second)
	require.Equal(t, state.Refused, outcome)
	_, _, outcome = e.endpointSet.AcquireOrQueue(nobody, nil, e.readySet, second)
	require.Equal(t, state.Empty, outcome, "the first ready set has nobody, full or not")
	e.end("a", 1)
	_, _, ok := second.Acquire()
	require.True(t, ok)
	gone := e.members["a"]
	e.remove("a")
	gone.SetMaxInFlight(7) // passed over
	require.NoError(t, e.ledger.Check())
}

// levels is a env with two priority levels: a and b in the first, y and z in
// the second, all with a cap of 2.
func newLevels(t *testing.T) (e *env, second *state.ReadySet) {
	e = newEnv(t)
	e.guard(state.Guards{})
	e.capped(2, "a", "b")
	second = e.endpointSet.NewReadySet(1)
	e.list("y", "z")
	for _, a := range []string{"y", "z"} {
		e.members[a].SetMaxInFlight(2)
		second.Set(e.members[a], 1, a)
	}
	return e, second
}

// fill lets n RPCs acquire and returns where they go.
func (e *env) fill(n int, sets ...*state.ReadySet) map[string]int {
	e.Helper()
	got := map[string]int{}
	for range n {
		r := e.rpc()
		require.Equal(e, state.Chosen, r.acquire(sets...))
		got[r.on]++
	}
	return got
}

// The second level gets what the first has no room for, and nothing else.
func TestSpillToTheSecondLevel(t *testing.T) {
	s, second := newLevels(t)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, s.fill(4, s.readySet, second))
	s.fill(3, s.readySet, second)
	s.end("a", 1)
	require.Equal(t, map[string]int{"a": 1}, s.fill(1, s.readySet, second), "the first has room again")
	s.fill(1, s.readySet, second)
	require.Equal(t, map[string]int{"a": 2, "b": 2, "y": 2, "z": 2}, s.loads())
	r := s.rpc()
	require.Equal(t, state.Queued, r.acquire(s.readySet, second))
	s.end("y", 1)
	require.Equal(t, state.Chosen, r.acquire(s.readySet, second))
	require.Equal(t, "y", r.on)
}

// A retry goes to another endpoint, in a lower level if need be, before it starts
// over and forgets what it has tried.
func TestRetrySpills(t *testing.T) {
	e, second := newLevels(t)
	e.members["a"].SetMaxInFlight(9)
	e.members["b"].SetMaxInFlight(9)
	e.fill(2, e.readySet, second)
	tried := new(state.Tried)
	var got []string
	for range 8 {
		lease, value, outcome := e.endpointSet.AcquireOrQueue(nobody, tried, e.readySet, second)
		require.Equal(t, state.Chosen, outcome)
		tried.Add(lease)
		e.leases[value.(string)] = append(e.leases[value.(string)], lease)
		got = append(got, value.(string))
	}
	for i := 0; i < len(got); i += 4 {
		require.ElementsMatch(t, []string{"a", "b"}, got[i:i+2], got)
		require.ElementsMatch(t, []string{"y", "z"}, got[i+2:i+4], got)
	}
	require.EqualValues(t, 6, e.endpointSet.Counters().RetriesToOtherEndpoint)
}

// Where the first level has nobody at a cap, it alone counts, even when it is empty.
func TestNoSpillWithoutACap(t *testing.T) {
	s, second := newLevels(t)
	for _, a := range []string{"a", "b"} {
		s.set(a, 0)
	}
	require.Equal(t, state.Empty, s.rpc().acquire(s.readySet, second))
	s.set("a", 1)
	s.fill(2, s.readySet, second)
	require.Len(t, s.fill(1, s.readySet, second), 1, "one drains, one is full")
	s.readySet.Remove(s.members["a"])
	require.Equal(t, state.Empty, s.rpc().acquire(s.readySet, second))
}

// A failed endpoint is not brought forward by the retry: it comes after all its
// equals that were not used since.
func TestRetryLeavesTheFailedEndpointBehind(t *testing.T) {
	e := newEnv(t)
	e.add(names(10)...)
	for range 20 {
		failed := e.open()
		lease := e.leases[failed][0]
		tried := new(state.Tried)
		tried.Add(lease)
		e.end(failed, 1)
		other := e.retry(tried)
		require.NotEqual(t, failed, other)
		e.end(other, 1)
		rest := e.calls(9)
		require.NotContains(t, rest[:8], failed)
		require.NotContains(t, rest[:8], other)
		require.Equal(t, failed, rest[8])
	}
}

// An attempt that has used nothing is taken back, and no other.
func TestTriedRemove(t *testing.T) {
	e := newEnv(t)
	e.add("a", "b", "c")
	e.openMany(3)
	tried := new(state.Tried)
	for _, a := range []string{"a", "b", "c"} {
		tried.Add(e.leases[a][0])
	}
	tried.Remove(e.leases["b"][0])
	require.Equal(t, "b", e.retry(tried))
	last := e.leases["b"][1]
	tried.Add(last)
	e.leases["b"] = e.leases["b"][:1]
	require.True(t, last.Release())
	tried.Remove(last) // over: it stays
	tried.Remove(e.leases["c"][0])
	require.Equal(t, "c", e.retry(tried))
}

// A lease that was given back notes nothing, although its entry is used again.
func TestTriedPassesOverLeasesGivenBack(t *testing.T) {
	e := newEnv(t)
	e.add("a", "b")
	stale, _, _ := e.readySet.Acquire()
	stale.Release()
	again := e.open()
	e.set(again, 1_000_000_000)
	require.Equal(t, again, e.retry(triedOf(stale)))
	require.Zero(t, e.endpointSet.Counters().RetriesToOtherEndpoint)
}

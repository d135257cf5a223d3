package state_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The next RPCs go where the fewest are in flight for the weight. At these numbers all
// are level then, so nothing is left open.
func TestFewestInFlight(t *testing.T) {
	for name, tc := range map[string]struct {
		weights, loads map[string]int
		want           map[string]int // of so many RPCs more
	}{
		"newcomer":            {map[string]int{"a": 1, "b": 1, "c": 1}, map[string]int{"a": 4, "b": 4}, map[string]int{"c": 4}},
		"level again":         {map[string]int{"a": 1, "b": 1, "c": 1}, map[string]int{"a": 4, "b": 4}, map[string]int{"a": 1, "b": 1, "c": 5}},
		"one to five":         {map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}, map[string]int{"a": 8}, map[string]int{"b": 8, "c": 8, "d": 8, "e": 8}},
		"never the busier":    {map[string]int{"a": 1, "b": 1}, map[string]int{"a": 5}, map[string]int{"b": 5}},
		"nor the one between": {map[string]int{"a": 1, "b": 1, "c": 1}, map[string]int{"a": 3, "b": 1, "c": 2}, map[string]int{"b": 1}},
		"small weights":       {map[string]int{"a": 2, "b": 5}, nil, map[string]int{"a": 6, "b": 15}},
		"small share":         {map[string]int{"a": 95, "b": 5}, nil, map[string]int{"a": 190, "b": 10}},
		"weight that rose":    {map[string]int{"a": 3, "b": 1}, map[string]int{"a": 4, "b": 4}, map[string]int{"a": 8}},
		"draining":            {map[string]int{"a": 0, "b": 1}, map[string]int{"b": 9}, map[string]int{"b": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			n := 0
			for a, w := range tc.weights {
				e.list(a)
				e.load(a, tc.loads[a])
				e.set(a, uint32(w))
				n += tc.want[a]
			}
			require.Equal(t, tc.want, e.openMany(n))
		})
	}
}

// A change of weight keeps the count and holds from the next choice on.
func TestWeightChangeKeepsTheCount(t *testing.T) {
	e := newEnv(t)
	e.add("a", "b")
	e.openMany(8)
	e.set("a", 3)
	require.Equal(t, map[string]int{"a": 4, "b": 4}, e.loads())
	require.Equal(t, map[string]int{"a": 8}, e.openMany(8), "to 12 and 4")
	e.set("a", 1)
	require.Equal(t, map[string]int{"b": 8}, e.openMany(8))
	require.Equal(t, map[string]int{"a": 12, "b": 12}, e.loads())
}

// Weight 0 takes no new leases; those it has live on and are counted when it is
// back.
func TestDrainAndBack(t *testing.T) {
	e := newEnv(t)
	e.add("a", "b")
	e.openMany(8)
	e.set("a", 0)
	require.Equal(t, map[string]int{"b": 2}, e.openMany(2))
	require.Equal(t, map[string]int{"a": 4, "b": 6}, e.loads())
	e.end("a", 1)
	e.set("a", 1)
	require.Equal(t, map[string]int{"a": 3}, e.openMany(3))
	e.set("a", 0)
	e.set("b", 0)
	_, _, ok := e.readySet.Acquire()
	require.False(t, ok, "all are draining")
	e.end("b", 6)
	e.set("b", 1)
	require.Equal(t, "b", e.open())
}

func TestNothingToAcquire(t *testing.T) {
	e := newEnv(t)
	for range 2 {
		lease, value, ok := e.readySet.Acquire()
		require.False(t, ok)
		require.Nil(t, value)
		require.False(t, lease.Release())
		e.list("a") // listed, not ready
	}
	require.Zero(t, e.ledger.Snapshot().InFlight)
}

// Serial calls over idle equals visit each once per round.
func TestSerialCallsRotate(t *testing.T) {
	for _, n := range []int{1, 2, 5, 50} {
		e := newEnv(t)
		e.add(names(n)...)
		first := e.calls(n)
		require.ElementsMatch(t, names(n), first)
		for range 3 {
			require.Equal(t, first, e.calls(n))
		}
	}
}

// An update that says what was known, or that does not concern an endpoint's
// order, does not disturb it.
func TestRotationOutlastsUpdates(t *testing.T) {
	e := newEnv(t)
	e.add(names(5)...)
	want := e.calls(5)
	for _, a := range names(5) {
		e.set(a, 1)
	}
	require.Equal(t, want, e.calls(5))
	e.list("other")
	e.endpointSet.NewReadySet(1).Set(e.members["other"], 1, "other")
	require.Equal(t, want, e.calls(5))
	e.remove("other")
	require.Equal(t, want, e.calls(5))

	e.remove(want[2])
	want = slices.Delete(want, 2, 3)
	require.Equal(t, want, e.calls(4), "the others keep their order")
}

// The one that waits longest is next: that is the one released first.
func TestRotationGoesByWaiting(t *testing.T) {
	e := newEnv(t)
	e.add(names(5)...)
	e.openMany(5)
	want := []string{"n0003", "n0000", "n0004", "n0002", "n0001"}
	for _, a := range want {
		e.end(a, 1)
	}
	require.Equal(t, want, e.calls(5))
}

// In a fresh ready set each endpoint is as likely to be first, second and so on,
// whatever the order of the list: a fleet of clients does not move in step. So is a
// newcomer among its equals, one that is back, and one whose weight has changed.
func TestPlaceIsRandom(t *testing.T) {
	const n, trials = 5, 1000
	for name, tc := range map[string]struct {
		prepare, happens func(e *env)
	}{
		"fresh":  {func(*env) {}, func(e *env) { e.add(names(n)...) }},
		"new":    {func(e *env) { e.add(names(n)[1:]...) }, func(e *env) { e.add(names(1)...) }},
		"back":   {func(e *env) { e.add(names(n)...) }, func(e *env) { e.readySet.Remove(e.members["n0000"]); e.set("n0000", 1) }},
		"weight": {func(e *env) { e.add(names(n)...) }, func(e *env) { e.set("n0000", 2); e.set("n0000", 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen [n]int
			for range trials {
				e := newEnv(t)
				tc.prepare(e)
				e.calls(min(n, 6*len(e.members)))
				tc.happens(e)
				seen[slices.Index(e.calls(n), "n0000")]++
				e.close()
			}
			for i, got := range seen { // seven standard deviations
				require.InDelta(t, trials/n, got, 7*math.Sqrt(trials*(1.0/n)*(1-1.0/n)), "place %d", i)
			}
		})
	}
}

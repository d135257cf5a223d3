package state_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// linear is a slow start whose share rises by a hundredth in a tenth of a
// second.
var linear = state.Guards{SlowStart: state.SlowStart{Window: 10 * time.Second, MinWeightPercent: 10, Aggression: 1}}

// The share by age is what Envoy's documentation says.
func TestFactor(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		start state.SlowStart
		age   time.Duration
		want  float64
	}{
		{state.SlowStart{}, 0, 1},
		{state.SlowStart{Window: 10 * s, MinWeightPercent: 10, Aggression: 1}, 0, 0.1},
		{state.SlowStart{Window: 10 * s, MinWeightPercent: 10, Aggression: 1}, s, 0.1},
		{state.SlowStart{Window: 10 * s, MinWeightPercent: 10, Aggression: 1}, 5 * s, 0.5},
		{state.SlowStart{Window: 10 * s, MinWeightPercent: 10, Aggression: 1}, 10*s - 1, 1 - 1e-10},
		{state.SlowStart{Window: 10 * s, MinWeightPercent: 10, Aggression: 1}, 10 * s, 1},
		{state.SlowStart{Window: 10 * s, MinWeightPercent: 10, Aggression: 1}, time.Hour, 1},
		{state.SlowStart{Window: 60 * s, MinWeightPercent: 10, Aggression: 1}, 0, 0.1},
		{state.SlowStart{Window: 60 * s, MinWeightPercent: 1, Aggression: 1}, 0, 1.0 / 60}, // as at one second
		{state.SlowStart{Window: 60 * s, MinWeightPercent: 10, Aggression: 2}, 15 * s, 0.5},
		{state.SlowStart{Window: 60 * s, MinWeightPercent: 10, Aggression: 1.5}, 30 * s, math.Cbrt(0.25)},
		{state.SlowStart{Window: 60 * s, MinWeightPercent: 10, Aggression: 0.5}, 30 * s, 0.25},
		{state.SlowStart{Window: 60 * s, MinWeightPercent: 100, Aggression: 1}, 0, 1},
		{state.SlowStart{Window: 60 * s, MinWeightPercent: 50, Aggression: 0.01}, 59 * s, 0.5},
		{state.SlowStart{Window: s, MinWeightPercent: 10, Aggression: 1}, 0, 1},
		{state.SlowStart{Window: s / 2, MinWeightPercent: 10, Aggression: 1}, 0, 1},
		{state.SlowStart{Window: time.Hour, MinWeightPercent: 1e-300, Aggression: 0.01}, 0, 1e-6},
	} {
		require.InDelta(t, tc.want, tc.start.Factor(tc.age), 1e-9, "%+v at %v", tc.start, tc.age)
	}
}

// An endpoint that joins starts slowly when it is ready, in steps of the window / 256,
// and is full at the window's end, exactly.
func TestFactorRisesInSteps(t *testing.T) {
	inTime(t, func(e *env) {
		e.guard(linear)
		e.add("a", "b")
		require.EqualValues(t, 1, e.share("a"), "the first list does not ramp")
		pass(time.Minute)
		e.list("c")
		pass(time.Minute)
		e.set("c", 3)
		start := e.share("c")
		require.Equal(t, 0.1, start)
		for age := time.Duration(0); age < 10*time.Second; age += state.Tick {
			require.InDelta(t, max(0.1, age.Seconds()/10), e.share("c"), 10.0/256/10+0.002, age)
			require.Less(t, e.share("c"), 1.0)
			pass(state.Tick)
		}
		require.EqualValues(t, 1, e.share("c"))
		require.EqualValues(t, 1, e.share("b"))
	})
}

// What does not begin a ramp anew, and what does.
func TestWhatRestartsASlowStart(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(e *env)
		want    float64 // after half the window
	}{
		"nothing":         {func(*env) {}, 0.5},
		"the same again":  {func(e *env) { e.set("c", 1) }, 0.5},
		"another weight":  {func(e *env) { e.set("c", 5) }, 0.5},
		"drained":         {func(e *env) { e.set("c", 0); e.set("c", 1) }, 0.5},
		"by Drain":        {func(e *env) { e.ledger.Drain("c").End() }, 0.5},
		"not ready":       {func(e *env) { e.readySet.Remove(e.members["c"]); e.set("c", 1) }, 0.5},
		"another level":   {func(e *env) { e.endpointSet.NewReadySet(1).Set(e.members["c"], 1, "c"); e.set("c", 1) }, 0.5},
		"another list":    {func(e *env) { e.add("d") }, 0.5},
		"listed with RPC": {func(e *env) { e.load("c", 1); e.remove("c"); e.add("c") }, 0.5},
		"guards":          {func(e *env) { e.guard(linear) }, 0.5},
		"failure":         {func(e *env) { e.members["c"].StartSlowly(); e.readySet.Remove(e.members["c"]); e.set("c", 1) }, 0.1},
		"failure, ready":  {func(e *env) { e.members["c"].StartSlowly(); e.set("c", 1) }, 0.1},
		"failure, no set": {func(e *env) { e.members["c"].StartSlowly() }, 0.5},
		"new endpoint":    {func(e *env) { e.remove("c"); e.add("c") }, 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				e.guard(linear)
				e.add("a", "b")
				e.add("c")
				pass(5 * time.Second)
				tc.happens(e)
				pass(10 * state.Tick) // to the next step
				require.InDelta(t, tc.want, e.share("c"), 0.02)
				require.EqualValues(t, 1, e.share("a"))
			})
		})
	}
}

// Two busy endpoints and a newcomer: at first it gets its share of what is new, and
// once the window is over it is level.
func TestNewcomerInABusyFleet(t *testing.T) {
	inTime(t, func(e *env) {
		e.guard(linear)
		e.add("a", "b")
		e.openMany(200)
		e.add("c")
		require.Equal(t, map[string]int{"a": 5, "b": 5, "c": 10}, e.openMany(20))
		pass(10 * time.Second)
		e.openMany(100)
		require.Equal(t, 320, e.loads()["a"]+e.loads()["b"]+e.loads()["c"])
		for _, a := range []string{"a", "b", "c"} {
			require.InDelta(t, 106.5, e.loads()[a], 0.5)
		}
	})
}

// Other endpoint sets that list an endpoint go on with its ramp, or begin it when it has
// not begun: each endpoint set that had a list before takes it as a newcomer.
func TestSlowStartOfTwoEndpointSets(t *testing.T) {
	inTime(t, func(x *env) {
		y, z := newEnvOn(x.T, x.ledger), newEnvOn(x.T, x.ledger)
		for _, e := range []*env{x, y} {
			e.guard(linear)
			e.add("a")
		}
		x.list("c")
		y.list("c") // known, and nobody has begun
		x.set("c", 1)
		pass(2 * time.Second)
		y.set("c", 1)
		require.InDelta(t, 0.2, x.share("c"), 0.01)
		require.Equal(t, 0.1, y.share("c"))
		pass(3 * time.Second)
		z.guard(linear)
		z.add("c")
		require.InDelta(t, 0.3, z.share("c"), 0.01, "since y began")
		z.remove("c")
		z.add("c")
		require.InDelta(t, 0.3, z.share("c"), 0.01, "since y began")
		require.InDelta(t, 0.5, x.share("c"), 0.01)
	})
}

// The first list of an endpoint set starts slowly what is new to a ledger in use: cold endpoints
// among warm ones. What the ledger knows is warm, and so is all where nothing is in use.
func TestFirstListInALedgerInUse(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(x, y *env) // x has a and b
		want   map[string]float64
	}{
		"in use":        {func(x, _ *env) { x.add("a", "b") }, map[string]float64{"a": 1, "b": 1, "c": 0.1}},
		"not ready yet": {func(x, _ *env) { x.list("a", "b") }, map[string]float64{"a": 1, "b": 1, "c": 1}},
		"draining": {func(x, _ *env) {
			x.list("a", "b")
			x.set("a", 0)
		}, map[string]float64{"a": 1, "b": 1, "c": 1}},
		"departed with RPCs": {func(x, _ *env) {
			x.add("a", "b")
			x.open()
			x.open()
			x.endpointSet.Close()
		}, map[string]float64{"a": 1, "b": 1, "c": 0.1}},
		"gone": {func(x, _ *env) {
			x.add("a", "b")
			x.endpointSet.Close()
		}, map[string]float64{"a": 1, "b": 1, "c": 1}},
		"an empty list first": {func(x, y *env) {
			y.list()
			x.add("a", "b")
		}, map[string]float64{"a": 1, "b": 1, "c": 0.1}},
		"from another key": {func(x, y *env) {
			y.endpointSet.StartWarm()
			x.add("a", "b")
		}, map[string]float64{"a": 1, "b": 1, "c": 1}},
		"off": {func(x, y *env) {
			y.guard(state.Guards{})
			x.add("a", "b")
		}, map[string]float64{"a": 1, "b": 1, "c": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(x *env) {
				y := newEnvOn(x.T, x.ledger)
				for _, e := range []*env{x, y} {
					e.guard(linear)
				}
				tc.before(x, y)
				pass(time.Minute)
				y.add("a", "b", "c")
				require.Equal(x.T, tc.want, map[string]float64{"a": y.share("a"), "b": y.share("b"), "c": y.share("c")})
			})
		})
	}
}

// at returns at which of the next n serial calls the endpoint is chosen, the
// first being 1.
func (e *env) at(addr string, n int) []int {
	e.Helper()
	var at []int
	for i, a := range e.calls(n) {
		if a == addr {
			at = append(at, i+1)
		}
	}
	return at
}

// idle has two idle endpoints, a and b, and c, which is idle and has a tenth of its
// weight: of two weights whose sum is 2.1 it has 0.1.
func idle(t *testing.T, test func(e *env)) {
	t.Helper()
	inTime(t, func(e *env) {
		e.guard(linear)
		e.add("a", "b")
		e.calls(7)
		e.add("c")
		test(e)
	})
}

// requireShare requires that c gets its part of serial calls, and is never without one
// for longer than a round.
func (e *env) requireShare(round, calls, least, most int) {
	e.Helper()
	at := e.at("c", calls)
	require.GreaterOrEqual(e, len(at), least, at)
	require.LessOrEqual(e, len(at), most, at)
	last := 0
	for _, i := range at {
		require.LessOrEqual(e, i-last, round, at)
		last = i
	}
	require.LessOrEqual(e, calls-last, round, at)
}

// While it is empty, a member that ramps gets its share of picks, and none too few for
// long.
func TestRampingMemberIsNotStarved(t *testing.T) {
	idle(t, func(e *env) {
		e.requireShare(22, 2100, 99, 101)
		pass(7 * time.Second)
		e.requireShare(4, 270, 69, 71) // 0.7 of 2.7
		pass(3 * time.Second)
		require.ElementsMatch(t, []string{"a", "b", "c"}, e.calls(3))
	})
}

// So it is beside others that are busy, with long streams or with many calls at once.
func TestRampingMemberIsNotStarvedByTheBusy(t *testing.T) {
	idle(t, func(e *env) {
		e.list("d", "e")
		e.load("d", 50)
		e.load("e", 7)
		e.set("d", 5)
		e.set("e", 3)
		pass(3 * time.Second)
		for range 300 { // all but c are above their shares now and then
			r := rand.IntN(3)
			for a, ls := range e.leases {
				if a != "c" && len(ls) > 0 && r == 0 {
					e.end(a, 1)
				}
			}
			n := 1
			for e.open() != "c" {
				n++
			}
			require.LessOrEqual(t, n, 38, "10.3 over 0.3, and 4 weights")
			e.end("c", 1)
		}
	})
}

// A retry that avoids others is a turn of c's, and does not let the time of others go on.
func TestForcedPicksDoNotOweTheOthers(t *testing.T) {
	inTime(t, func(e *env) {
		e.list("a", "b")
		e.set("a", 3)
		e.set("b", 1)
		e.calls(8)
		e.load("a", 1)
		e.set("a", 3)
		afterA := triedOf(e.leases["a"][0])
		for range 20 {
			require.Equal(t, "b", e.retry(afterA))
			e.end("b", 1)
		}
		e.end("a", 1)
		require.NotContains(t, e.calls(40), "b", "it has had more than its share")
	})
}

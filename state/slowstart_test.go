package state_test

import (
	"math"
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
		require.EqualValues(t, 1, z.share("c"), "its first list")
		z.remove("c")
		z.add("c")
		require.InDelta(t, 0.3, z.share("c"), 0.01, "since y began")
		require.InDelta(t, 0.5, x.share("c"), 0.01)
	})
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

// idle has two idle endpoints, a and b, and c, which is idle and starts slowly: by its
// score it would never be chosen.
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

// While it is empty, a member that starts slowly is chosen once in n ÷ factor picks,
// rounded up: at exactly each of those.
func TestMinShareIsExact(t *testing.T) {
	idle(t, func(e *env) {
		require.Equal(t, []int{30, 60, 90}, e.at("c", 100), "a tenth of a third")
		pass(7 * time.Second)
		require.Equal(t, "c", e.call(), "its share has risen")
		require.Equal(t, []int{5, 10, 15, 20}, e.at("c", 22), "3 ÷ 0.7 is above 4")
		pass(3 * time.Second)
		require.ElementsMatch(t, []string{"a", "b", "c"}, e.calls(3))
	})
}

// The number of members counts, of those that may be chosen but for their caps.
func TestMinShareFollowsTheNumber(t *testing.T) {
	idle(t, func(e *env) {
		e.list("d", "e", "f")
		e.set("d", 0)
		e.list("x")
		require.Equal(t, []int{30}, e.at("c", 30))
		e.readySet.Remove(e.members["b"])
		require.Equal(t, []int{20, 40}, e.at("c", 40))
		e.calls(10)
		e.set("b", 1)
		require.Equal(t, []int{20}, e.at("c", 20), "30 since it was chosen")
		e.members["b"].SetMaxInFlight(1)
		e.occupy("b")
		require.Equal(t, []int{30}, e.at("c", 30), "b is full")
		e.calls(25)
		e.readySet.Remove(e.members["b"])
		require.Equal(t, "c", e.call(), "it is overdue")
	})
}

// occupy puts a lease on a ready endpoint, whatever its turn.
func (e *env) occupy(addr string) {
	e.Helper()
	e.load(addr, 1)
	e.set(addr, 1)
}

// One that is out for a while, by a drain or a cap, has waited for nothing.
func TestMinShareBeginsAnew(t *testing.T) {
	idle(t, func(e *env) {
		e.calls(20)
		e.set("c", 0)
		require.Empty(t, e.at("c", 40))
		e.set("c", 1)
		require.Equal(t, []int{30}, e.at("c", 40))
	})
}

// A retry is a pick, too. A member that is due gets it, unless it was tried.
func TestMinShareOfRetries(t *testing.T) {
	idle(t, func(e *env) {
		e.occupy("a")
		afterA := triedOf(e.leases["a"][0])
		for range 29 {
			addr := e.retry(afterA)
			require.Equal(t, "b", addr)
			e.end(addr, 1)
		}
		require.Equal(t, "c", e.retry(afterA))
		afterC := triedOf(e.leases["c"][0])
		e.end("c", 1)
		e.calls(29)
		require.NotEqual(t, "c", e.retry(afterC))
		require.Equal(t, "c", e.retry(afterA), "it is overdue")
	})
}

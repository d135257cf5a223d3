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

// share returns the part of its weight that the endpoint has in the endpoint set.
func (s *site) share(addr string) float64 {
	s.Helper()
	require.NoError(s, s.ledger.Check())
	for _, n := range s.ledger.Snapshot().Endpoints {
		for _, m := range n.Members {
			if n.Addresses[0] == addr && m.EndpointSet == s.name {
				return m.SlowStartFactor
			}
		}
	}
	require.Fail(s, "not listed: "+addr)
	return 0
}

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

// An endpoint that joins ramps from when it is ready, in steps of the window / 256,
// and is full at the window's end, exactly.
func TestNewcomerRamps(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(linear)
		s.add("a", "b")
		require.EqualValues(t, 1, s.share("a"), "the first list does not ramp")
		pass(time.Minute)
		s.list("c")
		pass(time.Minute)
		s.set("c", 3)
		start := s.share("c")
		require.Equal(t, 0.1, start)
		for age := time.Duration(0); age < 10*time.Second; age += state.Tick {
			require.InDelta(t, max(0.1, age.Seconds()/10), s.share("c"), 10.0/256/10+0.002, age)
			require.Less(t, s.share("c"), 1.0)
			pass(state.Tick)
		}
		require.EqualValues(t, 1, s.share("c"))
		require.EqualValues(t, 1, s.share("b"))
	})
}

// Short windows rise at each tick.
func TestShortWindow(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(state.Guards{SlowStart: state.SlowStart{Window: 2 * time.Second, MinWeightPercent: 1, Aggression: 1}})
		s.add("a")
		s.add("b")
		pass(time.Second)
		for age := time.Second; age < 2*time.Second; age += state.Tick {
			require.InDelta(t, age.Seconds()/2, s.share("b"), 1e-9, age)
			pass(state.Tick)
		}
		require.EqualValues(t, 1, s.share("b"))
	})
}

// What does not begin a ramp anew, and what does.
func TestWhatRestartsARamp(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(s *site)
		want    float64 // after half the window
	}{
		"nothing":         {func(*site) {}, 0.5},
		"the same again":  {func(s *site) { s.set("c", 1) }, 0.5},
		"another weight":  {func(s *site) { s.set("c", 5) }, 0.5},
		"drained":         {func(s *site) { s.set("c", 0); s.set("c", 1) }, 0.5},
		"not ready":       {func(s *site) { s.view.Remove(s.members["c"]); s.set("c", 1) }, 0.5},
		"another level":   {func(s *site) { s.roster.NewReadySet(1).Set(s.members["c"], 1, "c"); s.set("c", 1) }, 0.5},
		"another list":    {func(s *site) { s.add("d") }, 0.5},
		"listed with RPC": {func(s *site) { s.load("c", 1); s.remove("c"); s.add("c") }, 0.5},
		"guards":          {func(s *site) { s.guard(linear) }, 0.5},
		"failure":         {func(s *site) { s.members["c"].StartSlowly(); s.view.Remove(s.members["c"]); s.set("c", 1) }, 0.1},
		"failure, ready":  {func(s *site) { s.members["c"].StartSlowly(); s.set("c", 1) }, 0.1},
		"failure, no set": {func(s *site) { s.members["c"].StartSlowly() }, 0.5},
		"new node":        {func(s *site) { s.remove("c"); s.add("c") }, 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(s *site) {
				s.guard(linear)
				s.add("a", "b")
				s.add("c")
				pass(5 * time.Second)
				tc.happens(s)
				pass(10 * state.Tick) // to the next step
				require.InDelta(t, tc.want, s.share("c"), 0.02)
				require.EqualValues(t, 1, s.share("a"))
			})
		})
	}
}

// A member of the first list ramps when it is back from a failure.
func TestBackFromAFailure(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(linear)
		s.add("a", "b")
		s.view.Remove(s.members["a"])
		s.members["a"].StartSlowly()
		pass(time.Hour)
		s.set("a", 2)
		require.Equal(t, 0.1, s.share("a"))
		pass(10 * time.Second)
		require.EqualValues(t, 1, s.share("a"))
	})
}

// While it is drained or not ready there is no ramp to show, and it goes on by
// the time.
func TestRampGoesOnUnseen(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(linear)
		s.add("a")
		s.add("c")
		s.set("c", 0)
		require.EqualValues(t, 1, s.share("c"))
		pass(5 * time.Second)
		s.set("c", 1)
		require.InDelta(t, 0.5, s.share("c"), 1e-9)
		s.view.Remove(s.members["c"])
		require.EqualValues(t, 1, s.share("c"))
		pass(5 * time.Second)
		s.set("c", 1)
		require.EqualValues(t, 1, s.share("c"))
	})
}

// Ramps follow guards that change.
func TestGuardsChangeDuringARamp(t *testing.T) {
	inTime(t, func(s *site) {
		s.add("a")
		s.add("c")
		require.EqualValues(t, 1, s.share("c"), "without a window")
		pass(2 * time.Second)
		s.guard(linear)
		require.InDelta(t, 0.2, s.share("c"), 1e-9)
		require.EqualValues(t, 1, s.share("a"))
		g := linear
		g.SlowStart.Window = 4 * time.Second
		s.guard(g)
		require.InDelta(t, 0.5, s.share("c"), 1e-9)
		pass(2 * time.Second)
		require.EqualValues(t, 1, s.share("c"))
		s.guard(linear)
		require.InDelta(t, 0.4, s.share("c"), 1e-9)
		s.guard(state.Guards{})
		require.EqualValues(t, 1, s.share("c"))
		pass(time.Minute)
		s.guard(linear)
		require.EqualValues(t, 1, s.share("c"))
	})
}

// The same in real time.
func TestRampInRealTime(t *testing.T) {
	s := newSite(t)
	g := linear
	g.SlowStart.Window = 1200 * time.Millisecond
	s.guard(g)
	s.add("a")
	start := time.Now()
	s.add("b")
	last := 0.0
	for last < 1 {
		share := s.share("b")
		require.GreaterOrEqual(t, share, last)
		last = share
		require.Less(t, time.Since(start), time.Minute)
		time.Sleep(time.Millisecond)
	}
	require.GreaterOrEqual(t, time.Since(start), g.SlowStart.Window)
}

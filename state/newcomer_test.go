package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// Two busy endpoints and a newcomer: at first it gets its share of what is new, and
// once the window is over it is level.
func TestD44NewcomerInABusyFleet(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(linear)
		s.add("a", "b")
		s.openMany(200)
		s.add("c")
		require.Equal(t, map[string]int{"a": 5, "b": 5, "c": 10}, s.openMany(20))
		pass(10 * time.Second)
		s.openMany(100)
		require.Equal(t, 320, s.loads()["a"]+s.loads()["b"]+s.loads()["c"])
		for _, a := range []string{"a", "b", "c"} {
			require.InDelta(t, 106.5, s.loads()[a], 0.5)
		}
	})
}

// Without a slow start it gets all that is new, until it is level.
func TestNewcomerWithoutSlowStart(t *testing.T) {
	inTime(t, func(s *site) {
		s.add("a", "b")
		s.openMany(200)
		s.add("c")
		require.Equal(t, map[string]int{"c": 20}, s.openMany(20))
	})
}

// A full share is the same as that of those who never ramped: equals rotate.
func TestRampEndsLevel(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(linear)
		s.add("a", "b")
		s.add("c")
		s.openMany(7)
		pass(10 * time.Second)
		s.openMany(30 - 7)
		require.Equal(t, map[string]int{"a": 10, "b": 10, "c": 10}, s.loads())
		for range 5 {
			require.ElementsMatch(t, []string{"a", "b", "c"}, s.round(3))
		}
	})
}

// A ramp that rises keeps the member's turn: it has waited for longest.
func TestRampKeepsTheTurn(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(linear)
		s.add("a", "b")
		s.add("c")
		require.NotContains(t, s.round(10), "c")
		pass(10 * time.Second)
		require.Equal(t, "c", s.call())
	})
}

// Other endpoint sets that list an endpoint go on with its ramp, or begin it when it has
// not begun: each endpoint set that had a list before takes it as a newcomer.
func TestRampOfTwoRosters(t *testing.T) {
	inTime(t, func(x *site) {
		y, z := newSiteOn(x.T, x.ledger), newSiteOn(x.T, x.ledger)
		for _, s := range []*site{x, y} {
			s.guard(linear)
			s.add("a")
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

// An endpoint that is in flight, or is another endpoint set's for long, is none that joins.
func TestKnownNodeDoesNotRamp(t *testing.T) {
	inTime(t, func(x *site) {
		y := newSiteOn(x.T, x.ledger)
		x.guard(linear)
		y.guard(linear)
		x.add("a")
		y.add("b")
		y.add("a")
		require.EqualValues(t, 1, y.share("a"))
		x.open()
		x.remove("a")
		x.add("a")
		require.EqualValues(t, 1, x.share("a"))
	})
}

// A share of next to nothing is a share.
func TestTinyShares(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(state.Guards{SlowStart: state.SlowStart{Window: time.Hour, MinWeightPercent: 1e-320, Aggression: 0.01}})
		s.list("a", "b", "c")
		for i, a := range []string{"a", "b", "c"} {
			s.members[a].StartSlowly()
			s.set(a, uint32(1+i*i))
		}
		require.NoError(t, s.ledger.Check())
		require.Equal(t, map[string]int{"a": 2, "b": 4, "c": 10}, s.openMany(16))
		pass(time.Hour)
		s.add("d")
		require.NotContains(t, s.openMany(100), "d")
		require.NoError(t, s.ledger.Check())
	})
}

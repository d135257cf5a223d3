package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// penalized has a penalty of a second.
var penalized = state.Guards{FailurePenalty: time.Second}

// A unit ends when the time since the attempt's start is over, not since its end.
func TestPenaltyEndsExactly(t *testing.T) {
	inTime(t, func(e *env) {
		e.guard(penalized)
		e.add("a", "b")
		e.openMany(10)
		pass(300 * time.Millisecond)
		e.fail("a", 2)
		require.Equal(t, map[string]int{"a": 3, "b": 5}, e.loads(), "what has ended is not in flight")
		require.Equal(t, map[string]int{"a": 2}, e.penalties())
		pass(690 * time.Millisecond)
		require.Equal(t, map[string]int{"a": 2}, e.penalties())
		pass(10 * time.Millisecond)
		require.Empty(t, e.penalties())
		require.NoError(t, e.ledger.Check())
	})
}

// A unit stands for the attempt that it is of: an endpoint that fails at once is as
// loaded as if it served.
func TestPenaltyCountsInTheScore(t *testing.T) {
	inTime(t, func(e *env) {
		e.guard(penalized)
		e.add("a", "b")
		e.openMany(4)
		e.fail("a", 2)
		require.Equal(t, map[string]int{"a": 1, "b": 1}, e.openMany(2))
		for _, n := range e.ledger.Snapshot().Endpoints {
			require.EqualValues(t, 4, n.Members[0].Score, n.Addresses)
		}
		pass(time.Second)
		require.Equal(t, map[string]int{"a": 2}, e.openMany(2), "level with b")
	})
}

func TestNoPenalty(t *testing.T) {
	for name, tc := range map[string]struct {
		guards state.Guards
		lived  time.Duration
		end    func(l state.Lease) bool
	}{
		"released":        {penalized, 0, state.Lease.Release},
		"lived as long":   {penalized, time.Second, state.Lease.Fail},
		"lived longer":    {penalized, time.Hour, state.Lease.Fail},
		"off":             {state.Guards{}, 0, state.Lease.Fail},
		"less than lived": {state.Guards{FailurePenalty: state.Tick}, state.Tick, state.Lease.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				e.guard(tc.guards)
				e.add("a", "b")
				e.openMany(4)
				pass(tc.lived)
				require.True(t, tc.end(e.leases["a"][0]))
				e.leases["a"] = e.leases["a"][1:]
				require.Empty(t, e.penalties())
				require.Zero(t, e.ledger.Snapshot().EndpointSets[0].Penalties)
				require.Equal(t, map[string]int{"a": 1, "b": 2}, e.loads())
			})
		})
	}
}

// Penalties put an endpoint one unit behind the busiest other, never further. Those
// that no ready set may choose have no such bound, nor those beside one at its cap.
func TestPenaltyIsBound(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(e *env)
		want    int // units on a after as many failures as can be
	}{
		"alone":     {func(*env) {}, 0},
		"idle":      {func(e *env) { e.add("b") }, 1},
		"busy":      {func(e *env) { e.list("b"); e.load("b", 7); e.set("b", 1) }, 8},
		"by weight": {func(e *env) { e.list("b"); e.load("b", 11); e.set("b", 4) }, 3}, // 4/1 is beyond 12/4
		"draining":  {func(e *env) { e.add("b"); e.set("a", 0) }, 20},
		"full":      {func(e *env) { e.list("b"); e.load("b", 7); e.set("b", 1); e.members["b"].SetMaxInFlight(7) }, 20},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				e.guard(penalized)
				e.list("a")
				e.load("a", 20)
				e.set("a", 1)
				tc.prepare(e)
				for range 20 {
					e.fail("a", 1)
				}
				require.Equal(t, tc.want, e.penalties()["a"])
			})
		})
	}
}

// Penalties of an endpoint go with it, and do not hold it.
func TestPenaltyDiesWithItsEndpoint(t *testing.T) {
	inTime(t, func(e *env) {
		e.guard(state.Guards{FailurePenalty: time.Hour})
		e.add("a", "b")
		e.openMany(8)
		e.fail("a", 3)
		e.remove("a")
		require.Equal(t, map[string]int{"a": 3}, e.penalties(), "one is in flight")
		e.fail("a", 1)
		require.Equal(t, map[string]int{"b": 4}, e.loads())
		e.add("a")
		require.Empty(t, e.penalties())
		require.NoError(t, e.ledger.Check())
	})
}

package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// penalized has a penalty of a second.
var penalized = state.Guards{FailurePenalty: time.Second}

// penalties returns the units of penalty by first address, none left out.
func (s *site) penalties() map[string]int {
	got := map[string]int{}
	for _, n := range s.ledger.Snapshot().Endpoints {
		if n.Penalty > 0 {
			got[n.Addresses[0]] = int(n.Penalty)
		}
	}
	return got
}

// fail ends the endpoint's oldest n leases as failures.
func (s *site) fail(addr string, n int) {
	s.Helper()
	for _, l := range s.leases[addr][:n] {
		require.True(s, l.Fail())
	}
	s.leases[addr] = s.leases[addr][n:]
	require.NoError(s, s.ledger.Check())
}

// A unit ends when the time since the attempt's start is over, not since its end.
func TestPenaltyEndsExactly(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(penalized)
		s.add("a", "b")
		s.openMany(10)
		pass(300 * time.Millisecond)
		s.fail("a", 2)
		require.Equal(t, map[string]int{"a": 3, "b": 5}, s.loads(), "what has ended is not in flight")
		require.Equal(t, map[string]int{"a": 2}, s.penalties())
		pass(690 * time.Millisecond)
		require.Equal(t, map[string]int{"a": 2}, s.penalties())
		pass(10 * time.Millisecond)
		require.Empty(t, s.penalties())
		require.NoError(t, s.ledger.Check())
	})
}

// A unit stands for the attempt that it is of: an endpoint that fails at once is as
// loaded as if it served.
func TestPenaltyCountsInTheScore(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(penalized)
		s.add("a", "b")
		s.openMany(4)
		s.fail("a", 2)
		require.Equal(t, map[string]int{"a": 1, "b": 1}, s.openMany(2))
		for _, n := range s.ledger.Snapshot().Endpoints {
			require.EqualValues(t, 4, n.Members[0].Score, n.Addresses)
		}
		pass(time.Second)
		require.Equal(t, map[string]int{"a": 2}, s.openMany(2), "level with b")
	})
}

// Penalties are of any length: what ends between two ticks ends at the second.
func TestPenaltyBetweenTicks(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(state.Guards{FailurePenalty: 3*state.Tick + 1})
		s.add("a", "b")
		s.openMany(2)
		s.fail("a", 1)
		pass(3 * state.Tick)
		require.Equal(t, map[string]int{"a": 1}, s.penalties())
		pass(state.Tick)
		require.Empty(t, s.penalties())
	})
}

// Units of many starts end one after the other.
func TestPenaltiesEndOneByOne(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(penalized)
		s.add("a", "b")
		for range 5 {
			s.openMany(20)
			pass(100 * time.Millisecond)
		}
		for i := range 5 {
			s.fail("a", 10-2*i) // of those that start last, the fewest
			s.end("a", 2*i)
		}
		for i := range 5 {
			left := 0
			for j := i; j < 5; j++ {
				left += 10 - 2*j
			}
			require.Equal(t, map[string]int{"a": left}, s.penalties(), i)
			if i == 0 {
				pass(400 * time.Millisecond)
			}
			pass(100 * time.Millisecond)
		}
		require.Empty(t, s.penalties())
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
			inTime(t, func(s *site) {
				s.guard(tc.guards)
				s.add("a", "b")
				s.openMany(4)
				pass(tc.lived)
				require.True(t, tc.end(s.leases["a"][0]))
				s.leases["a"] = s.leases["a"][1:]
				require.Empty(t, s.penalties())
				require.Zero(t, s.ledger.Snapshot().EndpointSets[0].Penalties)
				require.Equal(t, map[string]int{"a": 1, "b": 2}, s.loads())
			})
		})
	}
}

// A lease ends once, however it ends.
func TestFailOnlyOnce(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(penalized)
		s.add("a", "b")
		s.openMany(4)
		l := s.leases["a"][0]
		s.fail("a", 1)
		for range 3 {
			require.False(t, l.Fail())
			require.False(t, l.Release())
		}
		require.False(t, state.Lease{}.Fail())
		require.Equal(t, map[string]int{"a": 1}, s.penalties())
		require.EqualValues(t, 1, s.ledger.Snapshot().EndpointSets[0].Penalties)
	})
}

// Two endpoint sets on one endpoint penalize each by its own guards.
func TestPenaltiesOfTwoRosters(t *testing.T) {
	inTime(t, func(x *site) {
		y := newSiteOn(x.T, x.ledger)
		for _, s := range []*site{x, y} {
			s.add("a", "b")
			s.openMany(4)
		}
		x.guard(state.Guards{FailurePenalty: 3 * time.Second})
		y.guard(penalized)
		x.fail("a", 1)
		y.fail("a", 1)
		require.Equal(t, map[string]int{"a": 2}, x.penalties())
		pass(time.Second)
		require.Equal(t, map[string]int{"a": 1}, x.penalties())
		pass(2 * time.Second)
		require.Empty(t, x.penalties())
	})
}

// The guards at an attempt's end count.
func TestPenaltyOfNewGuards(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(penalized)
		s.add("a", "b")
		s.openMany(4)
		s.guard(state.Guards{FailurePenalty: 2 * time.Second})
		pass(1500 * time.Millisecond)
		s.fail("a", 1)
		require.Equal(t, map[string]int{"a": 1}, s.penalties())
		s.guard(state.Guards{})
		s.fail("a", 1)
		require.Equal(t, map[string]int{"a": 1}, s.penalties(), "what there is stays")
		pass(500 * time.Millisecond)
		require.Empty(t, s.penalties())
	})
}

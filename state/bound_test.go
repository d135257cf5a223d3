package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// failAll has each of n calls fail that goes to one of the endpoints, and
// returns where they all went. What goes elsewhere stays.
func (s *site) failAll(n int, addrs ...string) map[string]int {
	s.Helper()
	got := map[string]int{}
	for range n {
		a := s.open()
		got[a]++
		for _, failing := range addrs {
			if a == failing {
				s.fail(a, 1)
			}
		}
	}
	return got
}

// failOn has n calls fail on an endpoint, whatever its turn: as retries of RPCs
// that have tried all others, which have leases.
func (s *site) failOn(addr string, n int) {
	s.Helper()
	for range n {
		var tried state.Tried
		for a, ls := range s.leases {
			if a != addr && len(ls) > 0 {
				tried.Add(ls[0])
			}
		}
		lease, value, _ := s.view.AcquireElsewhere(&tried)
		require.Equal(s, addr, value)
		require.True(s, lease.Fail())
	}
	require.NoError(s, s.ledger.Check())
}

// busy lists an endpoint that is ready and has leases.
func (s *site) busy(addr string, weight uint32, leases int) {
	s.Helper()
	s.list(addr)
	s.load(addr, leases)
	s.set(addr, weight)
}

// Penalties put an endpoint one unit behind the busiest other, never further.
func TestPenaltyIsBound(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(penalized)
		s.busy("b", 1, 7)
		s.busy("c", 1, 4)
		s.add("a")
		s.failOn("a", 100)
		require.Equal(t, map[string]int{"a": 8}, s.penalties())
		require.EqualValues(t, 8, s.ledger.Snapshot().EndpointSets[0].Penalties)
		require.Equal(t, map[string]int{"b": 1, "c": 4}, s.openMany(5), "to 8 each")
		pass(time.Second)
		require.Equal(t, map[string]int{"a": 8}, s.openMany(8), "it catches up at once")
	})
}

// An endpoint that is alone, and so last already, is not penalized.
func TestNoPenaltyForTheOnlyNode(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(penalized)
		s.add("a")
		require.Equal(t, map[string]int{"a": 10}, s.failAll(10, "a"))
		require.Empty(t, s.penalties())
	})
}

// Beyond the busiest means by the score, which a weight is part of.
func TestPenaltyBoundByWeight(t *testing.T) {
	for name, tc := range map[string]struct {
		failing, busy uint32
		load, units   int
	}{
		"heavy fails": {4, 1, 2, 12}, // 13/4 is beyond 3/1
		"light fails": {1, 4, 11, 3}, // 4/1 is beyond 12/4
		"equal":       {1, 1, 5, 6},
		"both heavy":  {3, 3, 5, 6},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(s *site) {
				s.guard(penalized)
				s.busy("b", tc.busy, tc.load)
				s.busy("c", tc.busy*8, tc.load) // less so
				s.list("a")
				s.set("a", tc.failing)
				s.failOn("a", tc.units+20)
				require.Equal(t, map[string]int{"a": tc.units}, s.penalties())
			})
		})
	}
}

// Equals do not bound each other: an endpoint is penalized while another is as busy.
func TestPenaltyOfEquals(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(penalized)
		s.add("a", "b", "c")
		require.Equal(t, map[string]int{"a": 100, "b": 100, "c": 100}, s.failAll(300, "a", "b", "c"))
		p := s.penalties()
		require.Equal(t, 300, p["a"]+p["b"]+p["c"], "none is beyond the others")
	})
}

// In each ready set in which it may be chosen an endpoint must be last, to go free.
func TestPenaltyBoundInSeveralViews(t *testing.T) {
	inTime(t, func(x *site) {
		x.guard(penalized)
		y, lone := newSiteOn(x.T, x.ledger), newSiteOn(x.T, x.ledger)
		y.busy("c", 1, 5)
		y.add("a")
		lone.add("a")
		x.busy("b", 1, 1)
		x.add("a")
		x.failOn("a", 20)
		require.Equal(t, map[string]int{"a": 6}, x.penalties(), "to be behind c in y")
		y.view.Remove(y.members["a"])
		pass(time.Second)
		x.failOn("a", 20)
		require.Equal(t, map[string]int{"a": 2}, x.penalties(), "to be behind b")
	})
}

// A cap is no way around the bound: it is looked at once the attempt has ended.
func TestPenaltyBoundAtTheCap(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(penalized)
		s.capped(1, "a", "b")
		s.load("b", 1)
		s.set("b", 1) // full
		require.Equal(t, map[string]int{"a": 50}, s.failAll(50, "a"))
		require.Empty(t, s.penalties(), "nobody else may be chosen")
		s.members["b"].SetMaxInFlight(3)
		require.Equal(t, map[string]int{"a": 3, "b": 2}, s.failAll(5, "a"))
		require.Equal(t, map[string]int{"a": 2}, s.penalties())
	})
}

// An endpoint that no ready set may choose keeps its penalties: others do not bound it.
func TestPenaltyOfADrainingNode(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(penalized)
		s.add("a", "b")
		s.openMany(20)
		s.end("b", 10)
		s.set("a", 0)
		s.fail("a", 4)
		s.view.Remove(s.members["a"])
		s.fail("a", 3)
		s.remove("a")
		s.fail("a", 2)
		require.Equal(t, map[string]int{"a": 9}, s.penalties())
		s.add("a")
		require.Equal(t, map[string]int{"b": 10}, s.openMany(10), "it is back with what it has")
		pass(time.Second)
		require.Empty(t, s.penalties())
	})
}

// Penalties of an endpoint go with it, and do not hold it.
func TestPenaltyDiesWithItsNode(t *testing.T) {
	inTime(t, func(s *site) {
		s.guard(state.Guards{FailurePenalty: time.Hour})
		s.add("a", "b")
		s.openMany(8)
		s.fail("a", 3)
		s.remove("a")
		require.Equal(t, map[string]int{"a": 3}, s.penalties(), "one is in flight")
		s.fail("a", 1)
		require.Equal(t, map[string]int{"b": 4}, s.loads())
		s.add("a")
		require.Empty(t, s.penalties())
		require.NoError(t, s.ledger.Check())
	})
}

package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// at returns at which of the next n serial calls the endpoint is chosen, the
// first being 1.
func (s *site) at(addr string, n int) []int {
	s.Helper()
	var at []int
	for i, a := range s.round(n) {
		if a == addr {
			at = append(at, i+1)
		}
	}
	return at
}

// idle has two idle endpoints, a and b, and c, which is idle and ramps: by its
// score it would never be chosen.
func idle(t *testing.T, test func(s *site)) {
	t.Helper()
	inTime(t, func(s *site) {
		s.guard(linear)
		s.add("a", "b")
		s.round(7)
		s.add("c")
		test(s)
	})
}

// While it is empty, a member that ramps is chosen once in n ÷ share picks,
// rounded up: at exactly each of those.
func TestRampingMemberIsNotStarved(t *testing.T) {
	idle(t, func(s *site) {
		require.Equal(t, []int{30, 60, 90}, s.at("c", 100), "a tenth of a third")
		pass(7 * time.Second)
		require.Equal(t, "c", s.call(), "its share has risen")
		require.Equal(t, []int{5, 10, 15, 20}, s.at("c", 22), "3 ÷ 0.7 is above 4")
		pass(3 * time.Second)
		require.ElementsMatch(t, []string{"a", "b", "c"}, s.round(3))
	})
}

// Picks count from the last time that it was empty.
func TestStarvationRuleCountsFromItsLastCall(t *testing.T) {
	idle(t, func(s *site) {
		s.round(29)
		require.Equal(t, "c", s.open())
		require.Empty(t, s.at("c", 100), "it is not empty")
		s.end("c", 1)
		require.Equal(t, []int{30, 60}, s.at("c", 70))
	})
}

// The number of members counts, of those that may be chosen but for their caps.
func TestStarvationRuleFollowsTheNumber(t *testing.T) {
	idle(t, func(s *site) {
		s.list("d", "e", "f")
		s.set("d", 0)
		s.list("x")
		require.Equal(t, []int{30}, s.at("c", 30))
		s.view.Remove(s.members["b"])
		require.Equal(t, []int{20, 40}, s.at("c", 40))
		s.round(10)
		s.set("b", 1)
		require.Equal(t, []int{20}, s.at("c", 20), "30 since it was chosen")
		s.members["b"].SetMaxInFlight(1)
		s.occupy("b")
		require.Equal(t, []int{30}, s.at("c", 30), "b is full")
		s.round(25)
		s.view.Remove(s.members["b"])
		require.Equal(t, "c", s.call(), "it is overdue")
	})
}

// occupy puts a lease on a ready endpoint, whatever its turn.
func (s *site) occupy(addr string) {
	s.Helper()
	s.load(addr, 1)
	s.set(addr, 1)
}

// Several that wait are served by when each is due.
func TestStarvationRuleOfSeveral(t *testing.T) {
	idle(t, func(s *site) {
		s.round(12)
		s.add("d") // 4 members: each at every 40th
		got := s.round(28 + 12 + 40 + 40)
		require.Equal(t, []int{28, 68, 108}, indexes(got, "c"))
		require.Equal(t, []int{40, 80, 120}, indexes(got, "d"))
		s.add("e", "f", "g")
		s.members["a"].SetMaxInFlight(5)
		got = s.round(7 * 10 * 3)
		for _, a := range []string{"c", "d", "e", "f", "g"} {
			at := indexes(got, a)
			require.GreaterOrEqual(t, len(at), 2, "%s: %v", a, at)
			for i := range at[1:] {
				require.InDelta(t, 70, at[i+1]-at[i], 5, "%s: %v", a, at)
			}
		}
	})
}

func indexes(got []string, addr string) []int {
	var at []int
	for i, a := range got {
		if a == addr {
			at = append(at, i+1)
		}
	}
	return at
}

// It is a rule of the ready set: what other ready sets and endpoint sets pick does not count.
func TestStarvationRuleIsTheViews(t *testing.T) {
	idle(t, func(s *site) {
		y := newSiteOn(s.T, s.ledger)
		y.add("a", "b", "c")
		y.round(50)
		second := s.roster.NewReadySet(1)
		s.list("k")
		second.Set(s.members["k"], 1, "k")
		for range 50 {
			lease, _, _ := second.Acquire()
			lease.Release()
		}
		require.Equal(t, []int{30}, s.at("c", 40))
	})
}

// One that is out for a while, by a drain or a cap, has waited for nothing.
func TestStarvationRuleBeginsAnewWithItsSeat(t *testing.T) {
	idle(t, func(s *site) {
		s.round(20)
		s.set("c", 0)
		require.Empty(t, s.at("c", 40))
		s.set("c", 1)
		require.Equal(t, []int{30}, s.at("c", 40))
	})
}

// Retries are picks, too, and a member that is due gets one, unless it is the
// one that failed.
func TestStarvationRuleOfRetries(t *testing.T) {
	idle(t, func(s *site) {
		afterA, afterC := new(state.Tried), new(state.Tried)
		s.occupy("a")
		s.occupy("c")
		afterA.Add(s.leases["a"][0])
		afterC.Add(s.leases["c"][0])
		s.end("c", 1)
		var got []string
		for i := range 65 {
			after := afterA
			if i == 29 || i == 30 {
				after = afterC
			}
			lease, value, ok := s.view.AcquireElsewhere(after)
			require.True(t, ok)
			require.True(t, lease.Release())
			require.NoError(t, s.ledger.Check())
			got = append(got, value.(string))
		}
		require.Equal(t, []int{32, 62}, indexes(got, "c"))
	})
}

// By its score alone it is chosen as well, when the others are busy enough.
func TestRampingMemberByItsScore(t *testing.T) {
	idle(t, func(s *site) {
		require.NotContains(t, s.openMany(18), "c")
		require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, s.openMany(3), "10 is as much as 1 of a tenth")
	})
}

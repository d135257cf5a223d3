package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// toldFleet has ten streams of a process on b and c of three servers, for a has much of
// others. Its servers report every second until told is called with false.
func toldFleet(t *testing.T, check func(s *streams, pass func(d time.Duration, others ...int64))) {
	t.Helper()
	inTime(t, func(e *env) {
		e.reported(time.Second, 100, "a", "b", "c")
		s := e.streams()
		defer s.end()
		wait := func(d time.Duration, others ...int64) {
			for ; d > 0; d -= time.Second / 4 {
				for i, n := range others {
					addr := []string{"a", "b", "c"}[i]
					e.members[addr].Report(n+int64(s.at(addr)), 0.01)
				}
				pass(time.Second / 4)
				require.NoError(t, e.ledger.Check())
			}
		}
		e.members["b"].Report(95, 0)
		e.members["c"].Report(95, 0)
		s.begin(10)
		require.Zero(t, s.at("a"))
		check(s, wait)
	})
}

// What is uneven in a process for the fleet's sake stays so, as long as reports say it.
func TestStreamsStayWhereFleetNeedsThem(t *testing.T) {
	toldFleet(t, func(s *streams, wait func(time.Duration, ...int64)) {
		wait(time.Minute, 100, 95, 95)
		require.Zero(t, s.told())
		wait(3*time.Second, 100, 95)
		require.Zero(t, s.told(), "of two is enough")
		wait(time.Minute)
		s.want(3, on{"a": 3}) // as without reports
	})
}

// Where RPCs are so short that a report is out of date before the next one, they level
// nothing, and the process does.
func TestStreamsOfProcessAreLevelBesideShortRPCs(t *testing.T) {
	toldFleet(t, func(s *streams, wait func(time.Duration, ...int64)) {
		for range 120 {
			for _, addr := range []string{"a", "b", "c"} {
				s.members[addr].Report(int64(100+s.at(addr)), 1000)
			}
			pass(time.Second / 4)
		}
		s.want(3, on{"a": 3})
	})
}

// Turning reports off, or a long interval, has nothing wait.
func TestStreamsOfProcessAreLevelWithoutReports(t *testing.T) {
	toldFleet(t, func(s *streams, wait func(time.Duration, ...int64)) {
		s.endpointSet.SetReports(time.Hour)
		wait(time.Second, 100, 95, 95)
		s.endpointSet.SetReports(0)
		pass(7 * time.Second)
		s.want(3, on{"a": 3})
	})
}

// Streams leave a server that others fill, for those that have less, and no more than that.
func TestStreamsLeaveServerThatOthersFill(t *testing.T) {
	toldFleet(t, func(s *streams, wait func(time.Duration, ...int64)) {
		on := s.at("b")
		require.Positive(t, on)
		wait(2*time.Minute, 95, 200, 95)
		require.Zero(t, s.at("b"))
		require.LessOrEqual(t, s.told(), on+2)
		s.quiet()
		told := s.told()
		wait(time.Minute, 95, 200, 95)
		require.Equal(t, told, s.told())
	})
}

// Those leave within half an interval of a report, each by chance and at a random moment.
func TestStreamsLeaveAtRandomTimes(t *testing.T) {
	inTime(t, func(e *env) {
		e.reported(time.Minute, 0, "a", "b", "c", "d")
		e.list("e")
		e.set("e", 1)
		s := e.streams()
		defer s.end()
		e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1000})
		for _, a := range []string{"a", "b", "c", "d"} {
			e.members[a].Report(1000, 0)
		}
		e.members["e"].Report(0, 0)
		s.begin(100)
		require.Equal(t, 100, s.at("e"))
		for _, a := range []string{"a", "b", "c", "d"} {
			e.members[a].Report(0, 0)
		}
		e.members["e"].Report(1100, 0)
		want := 0.7 * (1100 - 220) / 1100 * 100
		for part := 1; part <= 10; part++ {
			pass(3 * time.Second)
			require.InDelta(t, want*float64(part)/10, s.told(), 15)
		}
		require.InDelta(t, want, s.told(), 1)
		pass(29 * time.Second)
		require.InDelta(t, want, s.told(), 1)
	})
}

// Limits of moves hold: of each second, of age, and of programs that do not listen.
func TestLeavingKeepsLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		rebalance state.Rebalance
		deaf      bool
		first     int // told in ten seconds
		later     int // in a minute
	}{
		"per second": {state.Rebalance{PerSecond: 0.5}, false, 6, 10},
		"age":        {state.Rebalance{PerSecond: 10, MinAge: 30 * time.Second}, false, 0, 10},
		"off":        {state.Rebalance{}, false, 0, 0},
		"deaf":       {state.Rebalance{PerSecond: 10}, true, 10, 12},
	} {
		t.Run(name, func(t *testing.T) {
			toldFleet(t, func(s *streams, wait func(time.Duration, ...int64)) {
				if s.deaf = tc.deaf; tc.deaf {
					s.begin(20)
				}
				s.endpointSet.SetRebalance(tc.rebalance)
				wait(10*time.Second, 95, 1000, 1000)
				require.LessOrEqual(t, s.told(), tc.first)
				wait(time.Minute, 95, 1000, 1000)
				require.LessOrEqual(t, s.told(), tc.later)
				require.Equal(t, tc.later > 0, s.told() > 0)
				s.endpointSet.SetRebalance(state.Rebalance{})
				pass(11 * time.Second) // the last places are given back
			})
		})
	}
}

// An endpoint that flaps is nowhere to move to.
func TestStreamsDoNotMoveToWhatFlaps(t *testing.T) {
	toldFleet(t, func(s *streams, wait func(time.Duration, ...int64)) {
		wait(time.Second, 100, 100, 100)
		for range 10 {
			s.readySet.Remove(s.members["a"])
			wait(time.Second/4, 100, 100, 100)
			s.set("a", 1)
			s.members["a"].Report(0, 0)
			wait(time.Second, 0, 100, 100)
		}
		require.Zero(t, s.told())
		wait(4*time.Minute, 0, 100, 100) // each time loads have longer to settle
		require.Positive(t, s.told())
	})
}

// Streams that cannot stay go where picks would go.
func TestStreamsThatMustGoFollowReports(t *testing.T) {
	toldFleet(t, func(s *streams, wait func(time.Duration, ...int64)) {
		told := s.at("b")
		s.set("b", 0)
		wait(10*time.Second, 200, 95, 95)
		s.want(told, on{"a": 0, "b": 0, "c": 10}) // though the process has nothing on a
	})
}

// A server that does not know yet of streams that are on their way does not lie.
func TestServersDoNotKnowOfPlaces(t *testing.T) {
	toldFleet(t, func(s *streams, wait func(time.Duration, ...int64)) {
		s.before = 5 * time.Second
		for range 60 { // who moves, and when, is chance
			if wait(time.Second, 0, 200, 200); s.endpoint("a").Arriving > 0 {
				break
			}
		}
		require.Positive(t, s.endpoint("a").Arriving)
		for range 3 {
			s.members["a"].Report(int64(s.at("a")), 0)
			require.True(t, s.report("a").Told)
			require.Zero(t, s.report("a").Others)
		}
	})
}

package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

type on = map[string]int

// Streams move to an endpoint that joins, as many as needed and no more, once loads have
// settled.
func TestStreamsMoveToNewcomer(t *testing.T) {
	for name, change := range map[string]func(*streams){
		"break before make":               func(*streams) {},
		"make before break":               func(s *streams) { s.overlap = true },
		"slow to move":                    func(s *streams) { s.before = 3 * time.Second },
		"slow to move, make before break": func(s *streams) { s.before, s.overlap = 3*time.Second, true },
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				e.add("a", "b", "c")
				s := e.streams()
				defer s.end()
				change(s)
				s.begin(300)
				e.add("d")
				pass(4900 * time.Millisecond)
				require.Zero(t, s.told())
				pass(time.Minute)
				s.want(75, on{"a": 75, "b": 75, "c": 75, "d": 75})
			})
		})
	}
}

// By weights, too.
func TestStreamsMoveByWeights(t *testing.T) {
	inTime(t, func(e *env) {
		e.add("a", "b", "c")
		s := e.streams()
		defer s.end()
		s.begin(300)
		e.set("a", 3)
		pass(time.Minute)
		s.want(80, on{"a": 180, "b": 60, "c": 60})
	})
}

// So many are asked in a second.
func TestMovesPerSecond(t *testing.T) {
	inTime(t, func(e *env) {
		e.add("a", "b", "c")
		s := e.streams()
		defer s.end()
		e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 10})
		s.begin(300)
		e.add("d")
		pass(5 * time.Second)
		for range 5 {
			before := s.told()
			pass(time.Second)
			require.InDelta(t, 10, s.told()-before, 1.1)
		}
		e.endpointSet.SetRebalance(state.Rebalance{})
		before := s.told()
		pass(time.Minute)
		require.Equal(t, before, s.told(), "off")
	})
}

// Young streams stay.
func TestMovesOnlyOldEnough(t *testing.T) {
	inTime(t, func(e *env) {
		e.add("a", "b", "c")
		s := e.streams()
		defer s.end()
		e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1000, MinAge: 30 * time.Second})
		s.begin(300)
		e.add("d")
		pass(29 * time.Second)
		require.Zero(t, s.told())
		pass(5 * time.Second)
		s.want(75, on{"a": 75, "b": 75, "c": 75, "d": 75})
	})
}

// Who does not listen is asked a few times, and stays.
func TestDeafStreamsStay(t *testing.T) {
	inTime(t, func(e *env) {
		e.add("a", "b", "c")
		s := e.streams()
		defer s.end()
		e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 10})
		s.deaf = true
		s.begin(300)
		e.add("d")
		pass(2 * time.Minute)
		require.LessOrEqual(t, s.told(), 12)
		pass(15 * time.Minute)
		require.LessOrEqual(t, s.told(), 30)
		s.want(s.told(), on{"a": 100, "b": 100, "c": 100})
	})
}

// An endpoint that flaps faster than loads settle makes nothing move.
func TestFlappingMovesNothing(t *testing.T) {
	inTime(t, func(e *env) {
		e.add("a", "b", "c")
		s := e.streams()
		defer s.end()
		s.begin(300)
		for range 10 {
			e.add("d")
			pass(200 * time.Millisecond)
			e.remove("d")
			pass(200 * time.Millisecond)
		}
		pass(time.Minute)
		s.want(0, on{"a": 100, "b": 100, "c": 100})
	})
}

// Where those that cannot stay go, no others are asked to.
func TestStreamsThatLeaveMakeLevel(t *testing.T) {
	for name, tc := range map[string]struct {
		streams, told int
		want          on
	}{
		"whole": {300, 100, on{"a": 100, "b": 100, "c": 0, "d": 100}},
		"half":  {300, 150, on{"a": 75, "b": 75, "c": 0, "d": 75, "e": 75}},
	} {
		t.Run(name, func(t *testing.T) {
			drained(t, tc.streams, func(s *streams) {
				s.endpointSet.SetRebalance(state.Rebalance{PerSecond: 10, DrainWithin: 20 * time.Second})
				for addr := range tc.want {
					if s.members[addr] == nil {
						s.add(addr)
					}
				}
				s.set("c", 0)
			}, func(s *streams) {
				pass(2 * time.Minute)
				s.want(tc.told, tc.want)
			})
		})
	}
}

// Nor is one drawn for an endpoint that has joined.
func TestNoDrawWhileOthersLeave(t *testing.T) {
	for range 30 {
		drained(t, 300, func(s *streams) {
			s.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1000, DrainWithin: 9 * time.Second})
			s.set("c", 0)
			pass(20 * time.Second)
			s.set("c", 1)
			pass(6 * time.Second)
			s.want(200, on{"a": 100, "b": 100, "c": 100})
			s.set("b", 0)
		}, func(s *streams) {
			pass(30 * time.Second)
			s.want(300, on{"a": 150, "b": 0, "c": 150})
		})
	}
}

package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// joins has 300 streams on a, b and c; then d is listed, ready by what join does.
func joins(t *testing.T, join func(s *streams), check func(s *streams)) {
	t.Helper()
	inTime(t, func(e *env) {
		e.add("a", "b", "c")
		s := e.streams()
		defer s.end()
		s.begin(300)
		pass(time.Second)
		s.list("d")
		join(s)
		check(s)
	})
}

// No more move to an endpoint than its cap, or its server's limit, has room for.
func TestMovesKeepCaps(t *testing.T) {
	for name, join := range map[string]func(*streams){
		"cap":          func(s *streams) { s.members["d"].SetMaxInFlight(30) },
		"server limit": func(s *streams) { s.members["d"].NewConnection().SetLimit(30) },
	} {
		t.Run(name, func(t *testing.T) {
			joins(t, func(s *streams) { join(s); s.set("d", 1) }, func(s *streams) {
				pass(time.Minute)
				s.want(30, on{"a": 90, "b": 90, "c": 90, "d": 30})
			})
		})
	}
}

// Moves follow the ramp of a slow start.
func TestMovesFollowSlowStart(t *testing.T) {
	joins(t, func(s *streams) {
		s.guard(state.Guards{SlowStart: state.SlowStart{Window: 100 * time.Second, MinWeightPercent: 10, Aggression: 1}})
		s.set("d", 1)
	}, func(s *streams) {
		for at := 10; at <= 90; at += 20 {
			pass(20 * time.Second)
			share := s.share("d")
			require.InDelta(t, 300*share/(3+share), s.at("d"), 6)
		}
		pass(time.Minute)
		s.want(75, on{"a": 75, "b": 75, "c": 75, "d": 75})
	})
}

// An endpoint that fails the streams that move there is shunned, longer each time; the old
// streams live.
func TestMovesShunWhoFailsThem(t *testing.T) {
	joins(t, func(s *streams) {
		s.overlap, s.fails = true, "d"
		s.endpointSet.SetRebalance(state.Rebalance{PerSecond: 10})
		s.set("d", 1)
	}, func(s *streams) {
		pass(5 * time.Second)
		require.Zero(t, s.told())
		pass(5 * time.Second)
		require.LessOrEqual(t, s.told(), 10)
		require.Positive(t, s.told())
		pass(5 * time.Minute)
		require.LessOrEqual(t, s.told(), 20)
		require.Equal(t, 300, s.at("a")+s.at("b")+s.at("c"))
	})
}

// Nothing moves where penalties are.
func TestMovesAvoidPenalties(t *testing.T) {
	joins(t, func(s *streams) {
		s.guard(state.Guards{FailurePenalty: time.Minute})
		s.set("d", 1)
		lease, value, ok := s.readySet.Acquire()
		require.True(t, ok)
		require.Equal(t, "d", value)
		require.True(t, lease.Fail())
	}, func(s *streams) {
		pass(55 * time.Second)
		require.Zero(t, s.told())
		pass(20 * time.Second)
		s.want(75, on{"d": 75})
	})
}

// Of the RPCs that have a context the first is the session's, and its next attempts are;
// others are any RPC.
func TestMarkIsTheFirstPicks(t *testing.T) {
	inTime(t, func(e *env) {
		e.add("a")
		e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1})
		s := &state.Session{}
		ctx, moved := s.Next(e.Context())
		pick := func() state.Lease {
			lease, _, outcome := e.endpointSet.AcquireOrQueue(ctx, nil, e.readySet)
			require.Equal(t, state.Chosen, outcome)
			require.NoError(t, e.ledger.Check())
			return lease
		}
		sessions := func() int64 { return e.ledger.Snapshot().EndpointSets[0].Sessions }
		first, token := pick(), pick()
		require.EqualValues(t, 1, sessions())
		token.Release()
		require.EqualValues(t, 1, sessions())
		first.Release()
		require.Zero(t, sessions())
		retry := pick()
		require.EqualValues(t, 1, sessions())
		e.set("a", 0)
		e.add("b")
		pass(time.Second)
		<-moved
		token = pick()
		require.EqualValues(t, 1, e.endpoint("a").Leaving)
		require.EqualValues(t, 1, e.endpoint("b").Arriving)
		token.Release()
		retry.Release()
		addr, _ := opens(e, s, nil)
		require.Equal(t, "b", addr)
		require.EqualValues(t, 1, e.endpointSet.Counters().MovesDone.Sum())
	})
}

// Sessions that are dropped, or used in ways that make no sense, leave nothing.
func TestMisusedSessions(t *testing.T) {
	inTime(t, func(e *env) {
		s := asked(e)
		for range 3 {
			s.Next(e.Context())
		}
		one, _ := opens(e, s, nil)
		two, _ := opens(e, s, nil) // two live RPCs
		require.Equal(t, []string{"b", "b"}, []string{one, two})
		e.add("c")
		e.set("b", 0)
		pass(time.Minute)
		require.EqualValues(t, 3, e.endpointSet.Counters().MovesAsked.Draining, "one at a time")
		require.EqualValues(t, 2, e.endpointSet.Counters().MovesGivenUp.Draining)
		require.NoError(t, e.ledger.Check())
	})
}

// A stream that goes elsewhere is counted once, however many attempts its next RPC takes while the
// one that was asked lives on.
func TestMovesAreCountedOnce(t *testing.T) {
	inTime(t, func(e *env) {
		e.add("a")
		e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1})
		s := &state.Session{}
		opens(e, s, nil)
		e.add("b")
		e.set("a", 0)
		pass(time.Second)
		ctx, _ := s.Next(e.Context())
		for range 3 {
			lease, value, _ := e.endpointSet.AcquireOrQueue(ctx, nil, e.readySet)
			require.Equal(t, "b", value)
			require.True(t, lease.Release())
		}
		require.EqualValues(t, 1, e.endpoint("a").MovedAway)
		require.EqualValues(t, 1, e.endpoint("b").MovedHere)
	})
}

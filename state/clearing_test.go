package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// drained has streams on three endpoints, of which c is to be left by what happens.
func drained(t *testing.T, n int, happens func(*streams), check func(*streams)) {
	t.Helper()
	inTime(t, func(e *env) {
		e.add("a", "b", "c")
		s := e.streams()
		defer s.end()
		s.onC = e.members["c"].NewConnection()
		s.begin(n)
		pass(time.Second)
		happens(s)
		check(s)
	})
}

// Streams that cannot stay go within the time, evenly over it, whatever their age.
func TestStreamsLeave(t *testing.T) {
	for name, happens := range map[string]func(*streams){
		"weight 0":        func(s *streams) { s.set("c", 0) },
		"off the list":    func(s *streams) { s.remove("c") },
		"connection ends": func(s *streams) { s.onC.End(); s.readySet.Remove(s.members["c"]); s.members["c"].StartSlowly() },
	} {
		t.Run(name, func(t *testing.T) {
			drained(t, 600, func(s *streams) {
				s.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1, MinAge: time.Hour, DrainWithin: 10 * time.Second})
				happens(s)
			}, func(s *streams) {
				for i := range 9 {
					require.InDelta(t, 200*i/9, s.told(), 25)
					pass(time.Second)
				}
				pass(time.Second / 10)
				s.want(200, on{"a": 300, "b": 300, "c": 0})
				pass(time.Minute)
				s.want(200, on{"a": 300, "b": 300, "c": 0})
			})
		})
	}
}

// Less time than before counts from when it is set, more does not.
func TestStreamsLeaveSooner(t *testing.T) {
	within := func(s *streams, d time.Duration) {
		s.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1, MinAge: time.Hour, DrainWithin: d})
	}
	drained(t, 600, func(s *streams) { within(s, time.Hour); s.set("c", 0) }, func(s *streams) {
		pass(10 * time.Second)
		require.Less(t, s.told(), 10)
		within(s, 10*time.Second)
		pass(4500 * time.Millisecond)
		require.InDelta(t, 100, s.told(), 25)
		within(s, time.Hour)
		pass(4600 * time.Millisecond)
		s.want(200, on{"a": 300, "b": 300, "c": 0})
	})
}

// Streams on a connection that the server closes may go back to the same endpoint: that
// is level.
func TestStreamsLeaveConnection(t *testing.T) {
	drained(t, 300, func(s *streams) {
		s.onC.End()
		s.members["c"].NewConnection()
	}, func(s *streams) {
		pass(2 * time.Second)
		s.want(100, on{"a": 100, "b": 100, "c": 100})
		require.True(t, s.onC.Close(func() {}), "nobody has the old connection")
		pass(time.Minute)
		s.want(100, on{"a": 100, "b": 100, "c": 100})
	})
}

// A connection that is made again is waited for: loads stay as they are.
func TestStreamsAwaitConnection(t *testing.T) {
	ends := func(s *streams) {
		s.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1, DrainWithin: 4 * time.Second})
		s.onC.End()
		s.readySet.Remove(s.members["c"])
		pass(1500 * time.Millisecond)
		require.Zero(s, s.told())
	}
	t.Run("made", func(t *testing.T) {
		drained(t, 300, ends, func(s *streams) {
			s.members["c"].NewConnection()
			s.set("c", 1)
			pass(3 * time.Second)
			s.want(100, on{"a": 100, "b": 100, "c": 100})
		})
	})
	t.Run("failed", func(t *testing.T) {
		drained(t, 300, ends, func(s *streams) {
			s.members["c"].StartSlowly()
			pass(200 * time.Millisecond)
			require.NotZero(s, s.told())
			pass(2300 * time.Millisecond)
			s.want(100, on{"a": 150, "b": 150})
		})
	})
	t.Run("for half of the time", func(t *testing.T) {
		drained(t, 300, ends, func(s *streams) {
			pass(2500 * time.Millisecond)
			s.want(100, on{"a": 150, "b": 150})
		})
	})
}

// An endpoint that is not ready for as long as loads take to settle is left; one that is
// back by then is not.
func TestStreamsLeaveEndpointThatIsNotReady(t *testing.T) {
	drained(t, 300, func(s *streams) { s.readySet.Remove(s.members["c"]) }, func(s *streams) {
		pass(4900 * time.Millisecond)
		s.set("c", 1)
		pass(time.Minute)
		s.want(0, on{"c": 100})
		s.readySet.Remove(s.members["c"])
		pass(4900 * time.Millisecond)
		require.Zero(t, s.told())
		pass(1200 * time.Millisecond)
		s.want(100, on{"a": 150, "b": 150, "c": 0})
	})
}

// Streams go home to the priority level in use.
func TestStreamsGoHome(t *testing.T) {
	inTime(t, func(e *env) {
		e.second = e.readySet
		e.add("p1")
		s := e.streams()
		defer s.end()
		s.begin(100)
		s.first = e.endpointSet.NewReadySet(0)
		low := e.endpointSet.NewReadySet(1)
		low.Set(e.members["p1"], 1, "p1")
		e.endpointSet.SetQueueSets(low)
		e.list("a", "b")
		for _, a := range []string{"a", "b"} {
			s.first.Set(e.members[a], 1, a)
		}
		pass(time.Minute)
		require.Zero(t, s.told(), "the lower level is in use")
		e.endpointSet.SetQueueSets(s.first, low)
		pass(time.Second)
		s.want(100, on{"a": 50, "b": 50, "p1": 0})
	})
}

// As long as there is nowhere to go nobody is asked; then the time begins.
func TestNobodyLeavesForNowhere(t *testing.T) {
	drained(t, 300, func(s *streams) {
		for _, a := range []string{"a", "b", "c"} {
			s.set(a, 0)
		}
	}, func(s *streams) {
		pass(time.Minute)
		require.Zero(t, s.told())
		s.capped(30, "d")
		pass(time.Minute)
		s.want(30, on{"d": 30})
		s.set("a", 1)
		pass(500 * time.Millisecond)
		require.InDelta(t, 30+170*500/900, s.told(), 30)
		pass(time.Minute)
		require.NoError(t, s.ledger.Check())
		require.Equal(t, 30, s.at("d"))
		require.Equal(t, 270, s.at("a"))
	})
}

// An RPC that ends by itself, before it is asked, has neither moved nor been given up.
func TestStreamsEndBeforeTheyLeave(t *testing.T) {
	drained(t, 300, func(s *streams) { s.onC.End() }, func(s *streams) {
		s.stop()
		pass(time.Minute)
		c := s.endpointSet.Counters()
		require.Zero(t, c.MovesAsked.Sum()+c.MovesDone.Sum()+c.MovesGivenUp.Sum())
	})
}

package state_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// asked returns a session whose only RPC, on a, was asked to go to b, which has a place
// for it. The RPC is over.
func asked(e *env) *state.Session {
	e.add("a", "b")
	e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1, DrainWithin: 0})
	s := &state.Session{}
	e.set("b", 0)
	ctx, moved := s.Next(e.Context())
	lease, value, _ := e.endpointSet.AcquireOrQueue(ctx, nil, e.readySet)
	require.Equal(e, "a", value)
	e.set("b", 1)
	e.set("a", 0)
	pass(time.Second)
	<-moved
	require.EqualValues(e, 1, e.endpoint("b").Arriving)
	require.EqualValues(e, 1, e.endpoint("a").Leaving)
	require.True(e, lease.Release())
	require.EqualValues(e, 1, e.ledger.Snapshot().Moving)
	return s
}

func (e *env) endpoint(addr string) state.EndpointSnapshot {
	for _, n := range e.ledger.Snapshot().Endpoints {
		if n.Address() == addr {
			return n
		}
	}
	return state.EndpointSnapshot{}
}

// opens opens the session's next RPC, and returns where it goes.
func opens(e *env, s *state.Session, tried *state.Tried) (string, state.Outcome) {
	ctx, cancel := context.WithCancel(e.Context())
	e.Cleanup(cancel)
	ctx, _ = s.Next(ctx)
	lease, value, outcome := e.endpointSet.AcquireOrQueue(ctx, tried, e.readySet)
	require.NoError(e, e.ledger.Check())
	if outcome != state.Chosen {
		return "", outcome
	}
	e.leases[value.(string)] = append(e.leases[value.(string)], lease)
	return value.(string), outcome
}

// The session's next RPC has its place, whatever others do and whatever is better.
func TestPlaceIsKept(t *testing.T) {
	for name, meanwhile := range map[string]func(e *env){
		"nothing":          func(*env) {},
		"a better one":     func(e *env) { e.add("c") },
		"a cap":            func(e *env) { e.members["b"].SetMaxInFlight(1) },
		"a lower cap":      func(e *env) { e.members["b"].SetMaxInFlight(1); e.add("c") },
		"another weight":   func(e *env) { e.set("b", 7); e.add("c") },
		"a new connection": func(e *env) { e.members["b"].NewConnection() },
		"others wait": func(e *env) {
			e.guard(state.Guards{})
			e.members["b"].SetMaxInFlight(1)
			ctx, cancel := context.WithCancel(e.Context())
			e.Cleanup(cancel)
			_, _, outcome := e.endpointSet.AcquireOrQueue(ctx, nil, e.readySet)
			require.Equal(e, state.Queued, outcome)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				s := asked(e)
				meanwhile(e)
				addr, _ := opens(e, s, nil)
				require.Equal(t, "b", addr)
				require.Zero(t, e.ledger.Snapshot().Moving)
				require.EqualValues(t, 1, e.endpointSet.Counters().MovesDone.Draining)
				require.EqualValues(t, 1, e.endpoint("b").InFlight)
			})
		})
	}
}

// A place that cannot be had any more is given back, and the RPC chooses as any other.
func TestPlaceIsGone(t *testing.T) {
	for name, meanwhile := range map[string]func(e *env) *state.Tried{
		"off the list": func(e *env) *state.Tried { e.remove("b"); return nil },
		"weight 0":     func(e *env) *state.Tried { e.set("b", 0); return nil },
		"not ready":    func(e *env) *state.Tried { e.readySet.Remove(e.members["b"]); return nil },
		"level unused": func(e *env) *state.Tried {
			v := e.endpointSet.NewReadySet(0)
			v.Set(e.members["c"], 1, "c")
			e.endpointSet.SetQueueSets(v)
			e.readySet = v
			return nil
		},
		"no room on the new connection": func(e *env) *state.Tried { e.members["b"].NewConnection().SetLimit(0); return nil },
		"tried": func(e *env) *state.Tried {
			tried := &state.Tried{}
			e.set("c", 0)
			lease, value, ok := e.readySet.Acquire()
			require.True(e, ok)
			require.Equal(e, "b", value)
			tried.Add(lease)
			lease.Release()
			e.set("c", 1)
			return tried
		},
	} {
		for _, wait := range []time.Duration{0, time.Second} {
			t.Run(name, func(t *testing.T) {
				inTime(t, func(e *env) {
					s := asked(e)
					e.add("c")
					tried := meanwhile(e)
					pass(wait)
					addr, _ := opens(e, s, tried)
					require.Equal(t, "c", addr)
					require.Zero(t, e.ledger.Snapshot().Moving)
					require.Zero(t, e.endpoint("b").InFlight)
				})
			})
		}
	}
}

// A session that opens nothing more gives its place back after 10 s, whatever contexts it has.
func TestPlaceLapses(t *testing.T) {
	for name, meanwhile := range map[string]func(*env, *state.Session){
		"no other context":           func(*env, *state.Session) {},
		"one that is never picked":   func(e *env, s *state.Session) { s.Next(e.Context()) },
		"several, one after another": func(e *env, s *state.Session) { pass(4 * time.Second); s.Next(e.Context()); s.Next(e.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				s, start := asked(e), time.Now()
				meanwhile(e, s)
				pass(8900*time.Millisecond - time.Since(start))
				require.EqualValues(t, 1, e.endpoint("b").InFlight)
				pass(200 * time.Millisecond)
				require.Zero(t, e.endpoint("b").InFlight)
				require.EqualValues(t, 1, e.endpointSet.Counters().MovesGivenUp.Draining)
				require.NoError(t, e.ledger.Check())
			})
		})
	}
}

// An endpoint set that closes keeps no place.
func TestPlaceOfClosed(t *testing.T) {
	inTime(t, func(e *env) {
		s := asked(e)
		e.endpointSet.Close()
		require.NoError(t, e.ledger.Check())
		require.Zero(t, e.ledger.Snapshot().InFlight)
		f := newEnvOn(e.T, e.ledger)
		f.add("c")
		addr, _ := opens(f, s, nil)
		require.Equal(t, "c", addr)
	})
}

package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// Weights, caps and penalties count as they do for the ready.
func TestConnectingAreCompared(t *testing.T) {
	starting(t, "a", "b", func(e *startEnv) {
		e.readySet.SetConnecting(e.members["b"], 3, time.Now().Add(time.Second))
		require.Equal(e, "a...", e.ask("1234"), "b has three times a's weight")
		require.Equal(e, "..a", e.ask("567"))
	})
	starting(t, "a", "b", func(e *startEnv) {
		e.members["b"].SetMaxInFlight(1)
		require.Equal(e, "a.aa", e.ask("1234"), "b is full")
		e.members["b"].SetMaxInFlight(2)
		require.Equal(e, ".", e.ask("5"))
	})
	starting(t, "a", "b", func(e *startEnv) {
		e.guard(state.Guards{})
		e.members["a"].SetMaxInFlight(1)
		e.members["b"].SetMaxInFlight(1)
		require.Equal(e, "a.", e.ask("12"))
		require.Equal(e, "-", e.ask("3"), "it waits for room")
		require.EqualValues(e, 1, e.ledger.Snapshot().Waiting)
		e.over("2")
		require.Equal(e, "-", e.ask("4"), "and nobody overtakes it")
		e.over("34")
	})
	starting(t, "a", "b", func(e *startEnv) {
		other := newEnvOn(e.T, e.ledger)
		other.guard(state.Guards{FailurePenalty: time.Minute})
		other.add("b", "c")
		other.open()
		other.open()
		other.fail("b", 1)
		require.Equal(e, "aa.", e.ask("123"), "b has a penalty")
		for addr, leases := range other.leases {
			other.end(addr, len(leases))
		}
	})
}

// A later attempt waits rather than go where it has failed.
func TestRetryWaitsForUntried(t *testing.T) {
	starting(t, "a", "b", func(e *startEnv) {
		require.Equal(e, "a.", e.ask("12"))
		require.Equal(e, "a", e.ask("3"))
		rpc := e.rpcs["3"]
		rpc.tried = new(state.Tried)
		rpc.tried.Add(rpc.lease)
		rpc.lease.Release()
		require.Equal(e, ".", e.ask("3"))
		e.set("b", 1)
		require.Equal(e, "b", e.ask("3"))
	})
	starting(t, "ac", "b", func(e *startEnv) {
		require.Equal(e, 2, len(e.ask("12")))
		require.Equal(e, ".", e.ask("3"))
		rpc := e.rpcs["1"]
		rpc.tried = new(state.Tried)
		rpc.tried.Add(rpc.lease)
		first := rpc.at
		rpc.lease.Release()
		require.NotContains(e, []string{first, "."}, e.ask("1"), "a ready one is left to try")
	})
}

// A ready set of another level takes what waits for this one.
func TestReservationGoesWithTheLevel(t *testing.T) {
	starting(t, "a", "b", func(e *startEnv) {
		require.Equal(e, "a.", e.ask("12"))
		higher := e.endpointSet.NewReadySet(0)
		e.list("h")
		higher.Set(e.members["h"], 1, "h")
		lease, value, outcome := e.endpointSet.AcquireOrQueue(e.rpcs["2"].ctx, nil, higher, e.readySet)
		e.chosen++
		e.check()
		require.Equal(e, state.Chosen, outcome)
		require.Equal(e, "h", value)
		require.Equal(e, "a1 b0 h1", e.reserved())
		require.True(e, lease.Release())
	})
}

// Ten endpoints, of which one is ready, get ten streams each of a hundred.
func TestBurstLandsLevel(t *testing.T) {
	starting(t, "a", "bcdefghij", func(e *startEnv) {
		rpcs := ""
		for i := range 100 {
			rpcs += string(rune('A' + i))
		}
		e.ask(rpcs)
		require.Equal(e, "a10 b10(10) c10(10) d10(10) e10(10) f10(10) g10(10) h10(10) i10(10) j10(10)", e.reserved())
		for _, name := range "bcdefghij" {
			e.set(string(name), 1)
			for name, rpc := range e.rpcs {
				if rpc.at == "" {
					e.ask(name)
				}
			}
		}
		require.Equal(e, "a10 b10 c10 d10 e10 f10 g10 h10 i10 j10", e.reserved())
	})
}

// An RPC that a policy above has drawn elsewhere, or whose attempt has ended, waits for
// nobody.
func TestServedRPCIsReservedNowhere(t *testing.T) {
	starting(t, "a", "b", func(e *startEnv) {
		require.Equal(e, "a.a.", e.ask("1234"))
		other := newEnv(e.T)
		other.add("c")
		lease, _, outcome := other.endpointSet.AcquireOrQueue(e.rpcs["2"].ctx, nil, other.readySet)
		require.Equal(e, state.Chosen, outcome)
		require.True(e, lease.Release())
		require.Equal(e, "a2 b1(1)", e.reserved())
		state.StopWaiting(e.rpcs["4"].ctx)
		require.Equal(e, "a2 b0", e.reserved())
		e.check()
		require.Equal(e, ".", e.ask("4"), "it may wait again")
	})
}

// A connection without room for all that have waited for it is for those that came first.
func TestConnectionGoesToTheFirstThatWaited(t *testing.T) {
	starting(t, "a", "b", func(e *startEnv) {
		require.Equal(e, "a.a.a.a.a.a.", e.ask("0123456789AB"))
		e.members["b"].NewConnection().SetLimit(3)
		e.set("b", 1)
		require.Equal(e, "a6 b3(3)", e.reserved())
		require.Equal(e, "bbb", e.ask("135"))
		require.Equal(e, "aaa", e.ask("79B"), "they choose anew")
	})
}

// What is reserved on an endpoint that leaves is room for nobody.
func TestReservationOfALeavingEndpointIsNoRoom(t *testing.T) {
	starting(t, "a", "b", func(e *startEnv) {
		wake := make(chan struct{}, 1)
		e.guard(state.Guards{Wake: wake})
		e.members["a"].SetMaxInFlight(1)
		e.members["b"].SetMaxInFlight(1)
		require.Equal(e, "a.", e.ask("12"))
		e.set("b", 1)
		require.Equal(e, "-", e.ask("3"), "both are full")
		e.remove("b")
		require.Empty(e, wake, "nobody is woken in vain")
		e.over("1")
		require.Len(e, wake, 1)
		require.Equal(e, "a", e.ask("3"))
	})
}

package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// A penalty takes room at a cap, as long as an endpoint is busy: one that fails at
// once gets its cap and no more. Its end makes room, and so does the end of the last
// that is busy, however that comes.
func TestPenaltyTakesRoomWhileAnotherIsBusy(t *testing.T) {
	for name, offer := range map[string]func(e *env){
		"penalty ends":         func(*env) { pass(time.Second) },
		"busy one ends an RPC": func(e *env) { e.end("b", 1) },
		"busy one leaves":      func(e *env) { e.remove("b") },
		"busy one is lost":     func(e *env) { e.readySet.Remove(e.members["b"]) },
		"busy one drains":      func(e *env) { e.set("b", 0) },
		"busy one's cap rises": func(e *env) { e.members["b"].SetMaxInFlight(3) },
		"its cap rises":        func(e *env) { e.members["a"].SetMaxInFlight(3) },
		"only the first level": func(e *env) { e.endpointSet.SetQueueSets(e.second) },
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				e.guard(penalized)
				e.second = e.endpointSet.NewReadySet(1)
				e.capped(2, "a", "b")
				e.list("y")
				e.members["y"].SetMaxInFlight(1)
				e.second.Set(e.members["y"], 1, "y")
				e.openMany(4)
				e.fail("a", 2)
				require.Equal(t, map[string]int{"a": 2}, e.penalties())
				require.Equal(t, []string{"a", "b"}, e.full())
				e.requireFull()
				require.Equal(t, map[string]int{"y": 1}, e.fill(1, e.readySet, e.second), "below there is room")
				e.endpointSet.SetQueueSets(e.readySet)
				rs := e.queued(1)
				if name == "only the first level" {
					e.end("y", 1)
				}
				offer(e)
				require.NoError(t, e.ledger.Check())
				require.Equal(t, []int{0}, served(rs))
			})
		})
	}
}

// So it does at a server's limit. That fails no RPC: one that may not wait goes to a
// busy connection or, where there is none, to the one that failed.
func TestPenaltyTakesRoomOnAConnection(t *testing.T) {
	for name, offer := range map[string]func(e *env, a, b *state.Connection){
		"penalty ends":           func(*env, *state.Connection, *state.Connection) { pass(time.Second) },
		"busy one ends an RPC":   func(e *env, _, _ *state.Connection) { e.end("b", 1) },
		"busy one's limit rises": func(_ *env, _, b *state.Connection) { b.SetLimit(3) },
		"its limit rises":        func(_ *env, a, _ *state.Connection) { a.SetLimit(3) },
		"it connects anew":       func(e *env, _, _ *state.Connection) { e.members["a"].NewConnection() },
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				e.guard(penalized)
				e.add("a", "b")
				a, b := e.members["a"].NewConnection(), e.members["b"].NewConnection()
				a.SetLimit(2)
				b.SetLimit(2)
				e.openMany(4)
				e.fail("a", 2)
				require.Equal(t, []string{"a", "b"}, e.full())
				unqueued := func() string {
					lease, value, _ := e.endpointSet.AcquireOrQueue(nobody, nil, e.readySet)
					require.True(t, lease.Release())
					return value.(string)
				}
				require.Equal(t, "b", unqueued(), "it begins there when the server lets it")
				e.members["b"].SetMaxInFlight(2)
				require.Equal(t, "a", unqueued())
				e.members["b"].SetMaxInFlight(0)
				rs := e.queued(1)
				offer(e, a, b)
				require.NoError(t, e.ledger.Check())
				require.Equal(t, []int{0}, served(rs))
			})
		})
	}
}

// A channel whose RPCs fail leaves others the room of their own connections.
func TestPenaltyTakesRoomOnItsOwnConnection(t *testing.T) {
	inTime(t, func(x *env) {
		y := newEnvOn(x.T, x.ledger)
		for _, e := range []*env{x, y} {
			e.guard(penalized)
			e.add("a", "b")
			e.members["a"].NewConnection().SetLimit(2)
			e.members["b"].NewConnection().SetLimit(2)
		}
		x.openMany(4)
		x.fail("a", 2)
		require.Equal(t, []string{"a", "b"}, x.full())
		require.Equal(t, map[string]int{"a": 2, "b": 2}, y.openMany(4))
	})
}

// Where penalties alone fill all endpoints, they take no room: the one with the lowest
// score is chosen, in the first level, up to its cap.
func TestPenaltiesAloneTakeNoRoom(t *testing.T) {
	inTime(t, func(e *env) {
		e.guard(penalized)
		e.capped(2, "a", "b")
		second := e.endpointSet.NewReadySet(1)
		e.list("y", "z")
		for _, a := range []string{"y", "z"} {
			e.members[a].SetMaxInFlight(1)
			second.Set(e.members[a], 1, a)
		}
		e.openMany(4)
		e.fill(2, e.readySet, second)
		for _, a := range []string{"a", "b", "y", "z"} {
			e.fail(a, len(e.leases[a]))
		}
		require.Equal(t, map[string]int{"a": 2, "b": 2, "y": 1, "z": 1}, e.penalties())
		for range 50 { // as fast as they fail
			r := e.rpc()
			require.Equal(t, state.Chosen, r.acquire(e.readySet, second))
			require.Contains(t, []string{"a", "b"}, r.on)
			e.fail(r.on, 1)
		}
		require.InDelta(t, e.penalties()["a"], e.penalties()["b"], 1)
		for busy := false; !busy; busy = e.loads()["a"] == 2 || e.loads()["b"] == 2 {
			e.fill(1, e.readySet, second)
		}
		require.Zero(t, e.loads()["y"]+e.loads()["z"])
		r := e.rpc()
		require.Equal(t, state.Queued, r.acquire(e.readySet, second), "one is busy")
		pass(time.Second)
		require.Equal(t, state.Chosen, r.acquire(e.readySet, second))
	})
}

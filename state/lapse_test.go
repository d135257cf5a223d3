package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// lapse is how long a grant is kept after the publish that follows it.
const lapse = 100 * time.Millisecond

// wakenEnv is busy endpoints whose RPCs are woken.
func wakenEnv(e *env, addrs ...string) (woken func() bool) {
	wake := make(chan struct{}, 1)
	e.guard(state.Guards{Wake: wake})
	e.capped(1, addrs...)
	e.openMany(len(addrs))
	return func() bool {
		select {
		case <-wake:
			return true
		default:
			return false
		}
	}
}

// What an RPC does not take up goes to the next, some time after it was woken; its
// place is kept, counts nowhere, and is its own when it is seen again.
func TestGrantLapses(t *testing.T) {
	inTime(t, func(e *env) {
		woken := wakenEnv(e, "a")
		rs := e.queued(3)
		e.end("a", 1)
		require.True(t, woken())
		pass(time.Hour)
		require.Equal(t, 2, e.waiting(), "it has not been woken")
		require.EqualValues(t, 1, e.ledger.Snapshot().Granted)
		e.endpointSet.Published()
		pass(lapse - state.Tick)
		require.False(t, woken())
		pass(state.Tick)
		require.NoError(t, e.ledger.Check())
		require.True(t, woken(), "the second is woken")
		require.Equal(t, 1, e.waiting())
		require.Equal(t, map[string]int{"a": 1}, e.loads())
		e.endpointSet.Published()
		require.Equal(t, state.Chosen, rs[1].acquire())
		pass(time.Hour)
		require.Equal(t, 1, e.waiting())

		require.Equal(t, state.Queued, rs[0].acquire(), "it is seen again")
		require.Equal(t, 2, e.waiting())
		rs[1].finish()
		require.Empty(t, served(rs[2:]))
		require.Equal(t, []int{0}, served(rs[:1]), "its place is the first")
		rs[0].finish()
		require.Equal(t, []int{0}, served(rs[2:]))
	})
}

// Where the whole process is held up, its RPCs do not lose what they were granted for it.
func TestStallLapsesNothing(t *testing.T) {
	inTime(t, func(e *env) {
		wakenEnv(e, "a")
		rs := e.queued(2)
		e.end("a", 1)
		e.endpointSet.Published()
		e.ledger.Stall(3 * lapse)
		pass(3 * lapse)
		require.Equal(t, state.Chosen, rs[0].acquire())
		rs[0].finish()
		e.endpointSet.Published()
		e.ledger.Stall(3 * lapse)
		pass(4 * lapse)
		require.EqualValues(t, 0, e.ledger.Snapshot().Granted, "it is not there")
		require.Equal(t, state.Chosen, rs[1].acquire())
	})
}

// A grant that lapses when nobody else waits makes room for whoever comes, and the RPC
// finds it when it is seen again.
func TestLastGrantLapses(t *testing.T) {
	inTime(t, func(e *env) {
		wakenEnv(e, "a")
		r := e.queued(1)[0]
		e.end("a", 1)
		e.endpointSet.Published()
		pass(lapse)
		require.Equal(t, map[string]int{"a": 0}, e.loads())
		require.Equal(t, "a", e.call(), "the ready set chooses by itself again")
		require.Equal(t, state.Chosen, r.acquire())
	})
}

// An RPC waits wherever a policy above has drawn it to: served in one endpoint set it
// waits in no other, of whatever ledger.
func TestServedRPCWaitsNowhere(t *testing.T) {
	inTime(t, func(x *env) {
		wakenEnv(x, "a")
		y, z := newEnvOn(x.T, x.ledger), newEnv(x.T)
		wakenEnv(z, "b")
		y.guard(state.Guards{})
		y.capped(1, "a")
		r, next := x.rpc(), []*rpc{x.rpc(), y.rpc()}
		for _, e := range []*env{y, z, x} {
			require.Equal(x, state.Queued, (&rpc{env: e, ctx: r.ctx}).acquire())
		}
		for _, n := range next {
			require.Equal(x, state.Queued, n.acquire())
		}
		require.Equal(x, 4, x.waiting())
		z.end("b", 1)
		require.Zero(x, z.waiting())
		require.Equal(x, state.Chosen, (&rpc{env: z, ctx: r.ctx}).acquire())
		require.NoError(x, x.ledger.Check())
		require.Equal(x, 2, x.waiting())
		x.end("a", 1)
		require.Equal(x, []int{0}, served(next))
	})
}

// An RPC that was given room in one endpoint set and asks in another is not there to
// take it up: the next has it at once. As long as it waits, it is offered room there
// again: where it asks is chance.
func TestGrantIsPassedOn(t *testing.T) {
	inTime(t, func(x *env) {
		woken := wakenEnv(x, "a")
		y := newEnv(x.T)
		wakenEnv(y, "b")
		r := x.rpc()
		there := &rpc{env: y, ctx: r.ctx}
		require.Equal(x, state.Queued, r.acquire())
		next := x.queued(1)
		x.end("a", 1)
		require.True(x, woken())
		require.Equal(x, state.Queued, there.acquire())
		require.True(x, woken())
		require.Equal(x, []int{0}, served(next))
		require.Zero(x, x.waiting())
		next[0].finish()
		require.False(x, woken())
		pass(lapse)
		require.True(x, woken(), "it may ask here now")
		require.Equal(x, state.Queued, there.acquire())
		pass(lapse)
		require.True(x, woken())
		x.endpointSet.Published()
		pass(lapse)
		require.Equal(x, state.Queued, there.acquire(), "it was slow to ask, and does elsewhere")
		pass(lapse)
		require.True(x, woken(), "what has lapsed is offered again, too")
		require.Equal(x, state.Chosen, r.acquire())
		require.Zero(x, y.waiting())
		pass(time.Hour)
		require.False(x, woken())
	})
}

// An RPC whose attempt may have ended is passed over until it asks again, at its place.
func TestPausedRPC(t *testing.T) {
	inTime(t, func(e *env) {
		wakenEnv(e, "a")
		rs := e.queued(3)
		e.end("a", 1)
		for _, r := range rs[:2] {
			state.PauseWaiting(r.ctx, nil)
		}
		require.NoError(t, e.ledger.Check())
		require.Zero(t, e.waiting())
		require.Equal(t, []int{0}, served(rs[2:]))
		require.Equal(t, state.Queued, rs[1].acquire())
		require.Equal(t, state.Queued, rs[0].acquire())
		rs[2].finish()
		require.Equal(t, []int{0}, served(rs[:2]))
		state.StopWaiting(rs[1].ctx)
		require.Zero(t, e.waiting())
		require.Equal(t, state.Queued, rs[1].acquire())
	})
}

// One that waits again after a pause must ask for room: else nobody knows that it still
// waits. Only then may it leave Pick at once.
func TestResumedRPCIsToAsk(t *testing.T) {
	inTime(t, func(e *env) {
		wakenEnv(e, "a")
		e.endpointSet.SetQueueSets(e.readySet)
		r := e.queued(1)[0]
		require.True(t, e.endpointSet.StillQueued(r.ctx))
		e.endpointSet.SetQueueSets()
		state.PauseWaiting(r.ctx, e.endpointSet)
		e.endpointSet.SetQueueSets(e.readySet)
		require.False(t, e.endpointSet.StillQueued(r.ctx))
		require.Equal(t, state.Queued, r.acquire())
		require.True(t, e.endpointSet.StillQueued(r.ctx))
		e.endpointSet.Published()
		pass(lapse)
		require.Equal(t, 1, e.waiting(), "it was seen")
		state.StopWaiting(r.ctx)
	})
}

// RPCs that were paused while no level served wait again when one does, at their
// places. Those that are not seen then lapse together.
func TestPausedRPCsResume(t *testing.T) {
	inTime(t, func(e *env) {
		wakenEnv(e, "a")
		e.endpointSet.SetQueueSets(e.readySet)
		rs := e.queued(6)
		for _, r := range rs {
			state.PauseWaiting(r.ctx, e.endpointSet)
		}
		require.Equal(t, 6, e.waiting(), "a picker of the past has no say while RPCs are served")
		e.endpointSet.SetQueueSets()
		for _, r := range rs {
			state.PauseWaiting(r.ctx, e.endpointSet)
		}
		require.Zero(t, e.waiting())
		e.end("a", 1)
		e.endpointSet.SetQueueSets(e.readySet)
		require.NoError(t, e.ledger.Check())
		require.Equal(t, 5, e.waiting())
		require.Empty(t, served(rs[5:]), "the first has room")
		e.endpointSet.Published()
		pass(lapse)
		require.NoError(t, e.ledger.Check())
		require.Equal(t, []int{0}, served(rs[5:]), "the others were not seen")
		require.Zero(t, e.waiting())
		require.Equal(t, state.Queued, rs[1].acquire())
		require.Equal(t, state.Queued, rs[0].acquire())
		rs[5].finish()
		require.Equal(t, []int{0}, served(rs[:2]))
	})
}

// Room is not given to an RPC that is over, whether or not notice was taken of it.
func TestRoomSkipsRPCsThatAreOver(t *testing.T) {
	e := busyEnv(t, "a")
	over := newWatched()
	_, _, outcome := e.endpointSet.AcquireOrQueue(over, nil, e.readySet)
	require.Equal(t, state.Queued, outcome)
	next := e.queued(1)
	close(over.done)
	e.end("a", 1)
	require.NoError(t, e.ledger.Check())
	require.Equal(t, []int{0}, served(next))
	require.Zero(t, e.waiting())
}

// While no level serves, nothing is granted, and what was is taken back. The places
// are kept. Room in a level that serves no more is taken back, too.
func TestNoLevelServes(t *testing.T) {
	e := busyEnv(t, "a")
	e.second = e.endpointSet.NewReadySet(1)
	e.list("y")
	e.members["y"].SetMaxInFlight(1)
	e.second.Set(e.members["y"], 1, "y")
	e.endpointSet.SetQueueSets(e.readySet)
	rs := e.queued(3)
	e.endpointSet.SetQueueSets(e.readySet, e.second)
	require.Equal(t, 2, e.waiting(), "y is below")
	e.endpointSet.SetQueueSets(e.readySet)
	require.NoError(t, e.ledger.Check())
	require.Equal(t, 3, e.waiting())
	e.end("a", 1)
	require.Equal(t, 2, e.waiting())
	e.endpointSet.SetQueueSets()
	require.NoError(t, e.ledger.Check())
	require.Equal(t, 3, e.waiting())
	require.Equal(t, map[string]int{"a": 0, "y": 0}, e.loads())
	require.Empty(t, served(rs))
	e.endpointSet.SetQueueSets(e.readySet, e.second)
	require.Equal(t, []int{0, 1}, served(rs))
}

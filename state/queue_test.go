package state_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// Who waits longest is served first, one for each release.
func TestRoomGoesToTheFirstThatWaits(t *testing.T) {
	e := newEnv(t)
	e.guard(state.Guards{})
	e.capped(2, "a", "b")
	e.openMany(4)
	rs := e.queued(5)
	require.Equal(t, 5, e.waiting())
	require.Empty(t, served(rs))
	for i, a := range []string{"b", "a", "a", "b"} {
		e.end(a, 1)
		require.Equal(t, 4-i, e.waiting())
		require.Equal(t, []int{i}, served(rs))
		require.Equal(t, a, rs[i].on)
	}
	rs[0].finish()
	require.Equal(t, []int{4}, served(rs))
	require.Zero(t, e.waiting())
	require.EqualValues(t, 5, e.ledger.Snapshot().EndpointSets[0].Queued)
}

// The endpoint sets of a ledger have one queue: room on an endpoint goes to whoever came
// first, wherever.
func TestOneQueueForAllEndpointSets(t *testing.T) {
	x := busyEnv(t, "a")
	y, z := newEnvOn(t, x.ledger), newEnvOn(t, x.ledger)
	for _, e := range []*env{y, z} {
		e.guard(state.Guards{})
		e.capped(1, "a")
	}
	var rs []*rpc
	for _, e := range []*env{y, x, x, z, y, x, z, z, y} {
		rs = append(rs, e.queued(1)...)
	}
	x.end("a", 1)
	for i := range rs {
		require.Equal(t, []int{i}, served(rs))
		require.Equal(t, len(rs)-1-i, x.waiting())
		rs[i].finish()
	}
}

// An RPC that nothing tells from others cannot wait.
func TestRPCWithoutAnEnd(t *testing.T) {
	e := busyEnv(t, "a")
	for range 3 {
		_, _, outcome := e.endpointSet.AcquireOrQueue(nobody, nil, e.readySet)
		require.Equal(t, state.Refused, outcome)
		_, _, outcome = e.endpointSet.AcquireOrQueue(neverEnds{context.Background()}, nil, e.readySet)
		require.Equal(t, state.Refused, outcome)
	}
	require.Zero(t, e.waiting())
	e.end("a", 1)
	lease, value, outcome := e.endpointSet.AcquireOrQueue(neverEnds{context.Background()}, nil, e.readySet)
	require.Equal(t, state.Chosen, outcome)
	require.Equal(t, "a", value)
	require.True(t, lease.Release())
}

// Each thing that makes room gives it to those that wait, in the same step.
func TestWhatMakesRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		make    func(e *env)
		granted int
	}{
		"release":           {func(e *env) { e.end("a", 1) }, 1},
		"failure":           {func(e *env) { e.fail("a", 1) }, 1},
		"higher cap":        {func(e *env) { e.members["a"].SetMaxInFlight(3) }, 2},
		"no cap":            {func(e *env) { e.members["a"].SetMaxInFlight(0) }, 5},
		"new endpoint":      {func(e *env) { e.capped(3, "c") }, 3},
		"endpoint is ready": {func(e *env) { e.set("d", 1) }, 5},
		"drain is over":     {func(e *env) { e.set("e", 1) }, 5},
		"another level":     {func(e *env) { e.endpointSet.SetQueueSets(e.readySet, e.second) }, 4},
		"only one level":    {func(e *env) { e.endpointSet.SetQueueSets(e.second) }, 4},
		"lower cap":         {func(e *env) { e.members["a"].SetMaxInFlight(1) }, 0},
		"not ready":         {func(e *env) { e.readySet.Remove(e.members["a"]) }, 0},
		"weight":            {func(e *env) { e.set("a", 5) }, 0},
		"level that drops":  {func(e *env) { e.endpointSet.SetQueueSets(e.readySet) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := busyEnv(t, "a", "b")
			e.list("d", "e", "y")
			e.set("e", 0)
			e.second = e.endpointSet.NewReadySet(1)
			e.members["y"].SetMaxInFlight(4)
			e.second.Set(e.members["y"], 1, "y")
			rs := e.queued(5)
			tc.make(e)
			require.NoError(t, e.ledger.Check())
			require.Equal(t, 5-tc.granted, e.waiting())
			require.Equal(t, []int{0, 1, 2, 3, 4}[:tc.granted], append([]int{}, served(rs)...))
		})
	}
}

// What was granted on a member that goes is taken back: its RPCs wait again, at
// the places that they had.
func TestGrantIsRevoked(t *testing.T) {
	for name, away := range map[string]func(e *env){
		"not ready": func(e *env) { e.readySet.Remove(e.members["a"]) },
		"draining":  func(e *env) { e.set("a", 0) },
		"off":       func(e *env) { e.remove("a") },
		"moved":     func(e *env) { e.second.Set(e.members["a"], 1, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.guard(state.Guards{})
			e.second = e.endpointSet.NewReadySet(1)
			e.capped(3, "a")
			e.capped(1, "b")
			e.endpointSet.SetQueueSets(e.readySet)
			e.openMany(4)
			rs := e.queued(5)
			e.end("a", 3)
			require.Equal(t, 2, e.waiting())
			away(e)
			require.NoError(t, e.ledger.Check())
			require.Equal(t, 5, e.waiting())
			require.Empty(t, served(rs))
			require.EqualValues(t, 1, e.ledger.Snapshot().InFlight)
			e.end("b", 1)
			for i := range rs {
				require.Equal(t, []int{i}, served(rs))
				rs[i].finish()
			}
		})
	}
}

// A level that is closed takes back what was granted in it.
func TestReadySetClosesWithGrants(t *testing.T) {
	e := busyEnv(t, "a", "b")
	rs := e.queued(3)
	e.end("a", 1)
	e.end("b", 1)
	e.readySet.Close()
	require.NoError(t, e.ledger.Check())
	require.Equal(t, 3, e.waiting())
	require.Zero(t, e.ledger.Snapshot().InFlight)
	next := e.endpointSet.NewReadySet(0)
	e.endpointSet.SetQueueSets(next)
	for _, a := range []string{"a", "b"} {
		next.Set(e.members[a], 1, a)
	}
	require.Equal(t, []int{0, 1}, served(rs))
}

// Room goes to the first that may use it: not to a retry whose attempts have been
// there, as long as another endpoint is ready and its patience lasts.
func TestRetryWaitsForAnotherEndpoint(t *testing.T) {
	type retry struct {
		*env
		*rpc
		tried *state.Tried
	}
	for name, tc := range map[string]struct {
		make func(r retry)
		on   string
	}{
		"the other has room":     {func(r retry) { r.env.end("b", 1) }, "b"},
		"a new one":              {func(r retry) { r.env.capped(1, "c") }, "c"},
		"patience ends":          {func(retry) { pass(time.Second) }, "a"},
		"the other is lost":      {func(r retry) { r.readySet.Remove(r.members["b"]) }, "a"},
		"the other drains":       {func(r retry) { r.env.set("b", 0) }, "a"},
		"the other leaves":       {func(r retry) { r.env.remove("b") }, "a"},
		"other level, with room": {func(r retry) { r.endpointSet.SetQueueSets(r.readySet, r.second) }, "y"},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				e.guard(penalized)
				e.capped(2, "a")
				e.capped(1, "b")
				e.second = e.endpointSet.NewReadySet(1)
				e.list("y")
				e.second.Set(e.members["y"], 1, "y")
				e.openMany(3)
				r := retry{e, e.rpc(), triedOf(e.leases["a"][0])}
				e.fail("a", 1)
				pass(10 * time.Millisecond)
				ask := func() (string, state.Outcome) {
					lease, value, outcome := e.endpointSet.AcquireOrQueue(r.ctx, r.tried, e.readySet)
					require.NoError(t, e.ledger.Check())
					if outcome != state.Chosen {
						return "", outcome
					}
					e.leases[value.(string)] = append(e.leases[value.(string)], lease)
					return value.(string), outcome
				}
				_, outcome := ask()
				require.Equal(t, state.Queued, outcome, "b is ready")
				next := e.queued(1)
				e.members["a"].SetMaxInFlight(3)
				require.Equal(t, []int{0}, served(next), "the next may use it")
				e.end("a", 1)
				tc.make(r)
				on, outcome := ask()
				require.Equal(t, state.Chosen, outcome)
				require.Equal(t, tc.on, on)
				want := 1
				if on == "a" {
					want = 0
				}
				require.EqualValues(t, want, e.endpointSet.Counters().RetriesToOtherEndpoint)
				lease, value, outcome := e.endpointSet.AcquireOrQueue(nobody, r.tried, e.readySet)
				require.Equal(t, outcome == state.Chosen, value != nil)
				lease.Release()
			})
		})
	}
}

// A retry that may not wait, or whose attempt failed long ago, starts over at once.
func TestRetryThatDoesNotWait(t *testing.T) {
	for name, tc := range map[string]func(e *env) context.Context{
		"no queue": func(e *env) context.Context { e.endpointSet.SetGuards(penalized); return e.rpc().ctx },
		"no end":   func(*env) context.Context { return nobody },
		"line is full": func(e *env) context.Context {
			e.endpointSet.SetGuards(state.Guards{FailurePenalty: time.Second, MaxQueued: 1})
			other := triedOf(e.leases["a"][0])
			_, _, outcome := e.endpointSet.AcquireOrQueue(e.rpc().ctx, other, e.readySet)
			require.Equal(e, state.Queued, outcome)
			return e.rpc().ctx
		},
		"no penalty": func(e *env) context.Context { e.guard(state.Guards{}); return e.rpc().ctx },
		"long ago":   func(e *env) context.Context { pass(time.Second); return e.rpc().ctx },
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				e.guard(penalized)
				e.capped(2, "a")
				e.capped(1, "b")
				e.openMany(3)
				tried := triedOf(e.leases["a"][0])
				e.end("a", 1)
				ctx := tc(e)
				lease, value, outcome := e.endpointSet.AcquireOrQueue(ctx, tried, e.readySet)
				require.Equal(t, state.Chosen, outcome)
				require.Equal(t, "a", value)
				require.True(t, lease.Release())
			})
		})
	}
}

// An endpoint set wakes its RPCs when some were given room, not otherwise, and waits
// for nobody to listen.
func TestWake(t *testing.T) {
	e := busyEnv(t, "a", "b")
	wake := make(chan struct{}, 1)
	e.guard(state.Guards{Wake: wake})
	woken := func() bool {
		select {
		case <-wake:
			return true
		default:
			return false
		}
	}
	rs := e.queued(3)
	require.False(t, woken())
	e.end("a", 1)
	e.end("b", 1)
	require.True(t, woken())
	require.False(t, woken(), "one signal is enough")
	require.Equal(t, []int{0, 1}, served(rs))
	require.False(t, woken())
	rs[0].finish()
	require.True(t, woken())
	require.Equal(t, []int{2}, served(rs))
	rs[1].finish()
	require.False(t, woken(), "nobody waits")

	e.guard(state.Guards{Wake: make(chan struct{})})
	e.openMany(1)
	rs = e.queued(1)
	rs = append(rs, e.queued(1)...)
	e.end(map[bool]string{true: "a", false: "b"}[len(e.leases["a"]) > 0], 1)
	require.Equal(t, []int{0}, served(rs), "a signal that nobody takes is lost, the room is not")
}

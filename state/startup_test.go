package state_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// startEnv is an environment with RPCs that may wait for endpoints that connect.
type startEnv struct {
	*env
	rpcs map[string]*startRPC
}

// startRPC is an RPC by its name.
type startRPC struct {
	ctx   context.Context
	end   context.CancelFunc
	tried *state.Tried
	lease state.Lease
	at    string
}

// starting runs a test in virtual time, in which some endpoints are ready and others
// connect, with weight 1 and 500 ms to do so.
func starting(t *testing.T, ready, connecting string, test func(*startEnv)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &startEnv{env: newEnv(t), rpcs: map[string]*startRPC{}}
		for _, name := range ready + connecting {
			e.list(string(name))
		}
		e.connecting(connecting, 500*time.Millisecond)
		for _, name := range ready {
			e.set(string(name), 1)
		}
		test(e)
		e.check()
		for name := range e.rpcs {
			e.over(name)
		}
		e.closes(e.members)
		require.False(t, e.endpointSet.Starting(), "nothing is left of it")
		require.Zero(t, e.ledger.Snapshot().InFlight)
	})
}

func (e *startEnv) connecting(names string, wait time.Duration) {
	for _, name := range names {
		e.readySet.SetConnecting(e.members[string(name)], 1, time.Now().Add(wait))
	}
}

// closes takes endpoints off the list.
func (e *startEnv) closes(members map[string]*state.Member) {
	for name := range members {
		e.remove(name)
	}
}

// ask lets RPCs ask for an endpoint, each named by a rune. It returns where they go; "."
// is an RPC that waits, "-" one that finds nobody.
func (e *startEnv) ask(names string) string {
	e.Helper()
	return e.askWithin(names, 0)
}

func (e *startEnv) askWithin(names string, deadline time.Duration) string {
	e.Helper()
	got := ""
	for _, name := range names {
		rpc := e.rpcs[string(name)]
		if rpc == nil {
			rpc = &startRPC{}
			rpc.ctx, rpc.end = context.WithCancel(e.Context())
			if deadline > 0 {
				rpc.ctx, rpc.end = context.WithTimeout(e.Context(), deadline)
			}
			e.rpcs[string(name)] = rpc
		}
		got += e.askFor(rpc)
	}
	return got
}

func (e *startEnv) askFor(rpc *startRPC) string {
	e.Helper()
	lease, value, outcome := e.endpointSet.AcquireOrQueue(rpc.ctx, rpc.tried, e.readySet)
	e.check()
	switch outcome {
	case state.Chosen:
		rpc.lease, rpc.at = lease, value.(string)
		return rpc.at
	case state.Reserved:
		return "."
	}
	return "-"
}

// over ends the RPC.
func (e *startEnv) over(names string) {
	e.Helper()
	for _, name := range names {
		rpc := e.rpcs[string(name)]
		delete(e.rpcs, string(name))
		rpc.end()
		synctest.Wait()
		rpc.lease.Release()
		e.check()
	}
}

func (e *startEnv) check() {
	e.Helper()
	require.NoError(e, e.ledger.Check())
}

// reserved returns what is in flight by endpoint, and the part of it that waits.
func (e *startEnv) reserved() string {
	e.Helper()
	got, all := "", int64(0)
	s := e.ledger.Snapshot()
	for _, n := range s.Endpoints {
		got += fmt.Sprintf(" %s%d", n.Addresses[0], n.InFlight)
		if n.Reserved > 0 {
			got += fmt.Sprintf("(%d)", n.Reserved)
		}
		all += n.Reserved
	}
	require.Equal(e, all, s.Reserved)
	require.Equal(e, all, s.EndpointSets[0].Reserved)
	require.Zero(e, s.Waiting, "none waits for room")
	return got[min(1, len(got)):]
}

func TestBurstWaitsForLevel(t *testing.T) {
	starting(t, "a", "bc", func(e *startEnv) {
		require.Equal(e, "a..", e.ask("123"))
		require.Equal(e, "a..", e.ask("456"), "equal scores: the one that is ready")
		require.Equal(e, "..", e.ask("23"), "still")
		require.Equal(e, "a2 b2(2) c2(2)", e.reserved())
		e.set("b", 1)
		require.ElementsMatch(e, []rune("bb.."), []rune(e.ask("2356")))
		require.Equal(e, "a2 b2 c2(2)", e.reserved())
		e.set("c", 1)
		require.Equal(e, "a2 b2 c2(2)", e.reserved())
		e.over("1")
		require.Equal(e, "a", e.ask("7"), "c keeps the places of those that waited for it")
	})
}

func TestNothingInFlightDoesNotWait(t *testing.T) {
	starting(t, "a", "bc", func(e *startEnv) {
		for range 20 {
			require.Equal(e, "a", e.ask("1"))
			e.over("1")
		}
		require.Equal(e, "a0 b0 c0", e.reserved())
	})
	starting(t, "", "bc", func(e *startEnv) {
		require.Equal(e, "--", e.ask("12"), "none is ready")
	})
}

// What was in flight before the endpoints connect is not what an RPC waits beside.
func TestOlderRPCsDoNotMakeOneWait(t *testing.T) {
	inTime(t, func(e *env) {
		e.add("a")
		e.open()
		e.list("b")
		e.readySet.SetConnecting(e.members["b"], 1, time.Now().Add(time.Second))
		_, value, outcome := e.endpointSet.AcquireOrQueue(e.Context(), nil, e.readySet)
		require.Equal(e, state.Chosen, outcome)
		require.Equal(e, "a", value)
	})
}

func TestReservationEnds(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(*startEnv)
		then string // where its RPC goes
	}{
		"it fails":             {func(e *startEnv) { e.readySet.Remove(e.members["b"]) }, "a"},
		"it leaves":            {func(e *startEnv) { e.remove("b") }, "a"},
		"it drains":            {func(e *startEnv) { e.readySet.SetConnecting(e.members["b"], 0, time.Now().Add(time.Minute)) }, "a"},
		"it is ready to drain": {func(e *startEnv) { e.set("b", 0) }, "a"},
		"ready and lost":       {func(e *startEnv) { e.set("b", 1); e.readySet.Remove(e.members["b"]) }, "a"},
		"ready elsewhere":      {func(e *startEnv) { e.endpointSet.NewReadySet(1).Set(e.members["b"], 1, "b") }, "a"},
		"its time is over":     {func(e *startEnv) { pass(500 * time.Millisecond) }, "a"},
		"almost":               {func(e *startEnv) { pass(500*time.Millisecond - 1) }, "."},
		"ready":                {func(e *startEnv) { e.set("b", 1) }, "b"},
		"ready late":           {func(e *startEnv) { pass(time.Minute); e.set("b", 1) }, "b"},
		"another weight":       {func(e *startEnv) { e.readySet.SetConnecting(e.members["b"], 2, time.Now().Add(time.Minute)) }, "."},
		"the RPC is over":      {func(e *startEnv) { e.over("2") }, "a"},
		"the set closes":       {func(e *startEnv) { e.readySet.Close() }, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			starting(t, "a", "b", func(e *startEnv) {
				require.Equal(e, "a.", e.ask("12"))
				row.end(e)
				e.check()
				if name == "the RPC is over" {
					require.Equal(e, "a1 b0", e.reserved())
					e.over("1") // so that the next one does not wait
				}
				require.Equal(e, row.then, e.ask("2"))
			})
		})
	}
}

// An RPC that does not take up its place has none any more: it runs elsewhere.
func TestReservationThatIsNotTakenUp(t *testing.T) {
	starting(t, "a", "b", func(e *startEnv) {
		require.Equal(e, "a.", e.ask("12"))
		e.set("b", 1)
		require.Equal(e, "a1 b1(1)", e.reserved())
		pass(time.Second + 20*time.Millisecond)
		require.Equal(e, "a1 b0", e.reserved())
		require.False(e, e.endpointSet.Starting())
		require.Equal(e, "b", e.ask("2"))
	})
}

// An attempt's age is counted from when it takes up its place: one that fails at once
// leaves its penalty.
func TestWaitingIsNoAge(t *testing.T) {
	starting(t, "a", "b", func(e *startEnv) {
		e.guard(state.Guards{FailurePenalty: 300 * time.Millisecond})
		require.Equal(e, "a.", e.ask("12"))
		pass(400 * time.Millisecond)
		require.Equal(e, "a", e.ask("3"), "its deadline apart, b scores as a does")
		e.set("b", 1)
		require.Equal(e, "b", e.ask("2"))
		require.True(e, e.rpcs["2"].lease.Fail())
		require.Equal(e, map[string]int{"b": 1}, e.penalties())
	})
}

func TestDeadlinesThatAreNear(t *testing.T) {
	starting(t, "a", "bc", func(e *startEnv) {
		require.Equal(e, "a", e.ask("1"))
		require.Equal(e, "aa", e.askWithin("23", time.Second-1))
		require.Equal(e, ".", e.askWithin("4", time.Second))
		pass(400 * time.Millisecond)
		require.Equal(e, "a", e.askWithin("5", 199*time.Millisecond))
		require.Equal(e, ".", e.askWithin("6", 200*time.Millisecond))
		require.Equal(e, ".", e.ask("4"))
	})
}

func TestRPCWithoutAnEndDoesNotWait(t *testing.T) {
	starting(t, "a", "b", func(e *startEnv) {
		require.Equal(e, "a", e.ask("1"))
		rpc := &startRPC{ctx: context.Background(), end: func() {}}
		e.rpcs["2"] = rpc
		require.Equal(e, "a", e.askFor(rpc))
	})
}

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

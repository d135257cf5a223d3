package state_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

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

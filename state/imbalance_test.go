package state_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// imbalance returns what snapshots and totals agree on. The totals are those of a caller who
// has asked before, so that they are made of what is kept.
func (e *env) imbalance() float64 {
	e.Helper()
	require.NoError(e, e.ledger.Check())
	i := e.ledger.Snapshot().Imbalance
	require.InDelta(e, i, e.ledger.Totals(e.ledger.Totals(nil)).Imbalance, 1e-9)
	return i
}

// An endpoint that is full has what it may have, and is left out. So the spread of a service
// that is at its caps is 0.
func TestFullEndpointsAreLeftOut(t *testing.T) {
	e := newEnv(t)
	e.list("a", "b", "c")
	e.members["a"].SetMaxInFlight(2)
	for _, a := range []string{"a", "b", "c"} {
		e.set(a, 1)
	}
	e.openMany(6)
	require.Zero(t, e.imbalance())
	e.openMany(10)
	require.Equal(t, map[string]int{"a": 2, "b": 7, "c": 7}, e.loads())
	require.Zero(t, e.imbalance())
	e.end("b", 3)
	require.EqualValues(t, 3, e.imbalance(), "b is behind c")
	e.end("a", 1)
	require.EqualValues(t, 6, e.imbalance(), "a has room again")
	e.open()
	require.EqualValues(t, 3, e.imbalance())
	e.members["a"].SetMaxInFlight(0)
	require.EqualValues(t, 5, e.imbalance(), "it has no cap any more")
	e.members["b"].SetMaxInFlight(4)
	e.members["c"].SetMaxInFlight(7)
	require.Zero(t, e.imbalance(), "c has the most, and is full")
}

// A connection without room makes its endpoint as full as a cap does; so does the cap of one
// endpoint set where another has none.
func TestLimitsOfOneEndpointSetCount(t *testing.T) {
	e := newEnv(t)
	e.add("a", "b")
	connection := e.members["a"].NewConnection()
	connection.SetLimit(2)
	e.openMany(4)
	other := newEnvOn(t, e.ledger)
	other.add("b")
	other.openMany(9)
	require.Zero(t, e.imbalance())
	connection.SetLimit(math.MaxUint32)
	require.EqualValues(t, 9, e.imbalance())
	other.list("a")
	other.members["a"].SetMaxInFlight(2)
	require.EqualValues(t, 9, e.imbalance(), "nobody chooses it there")
	other.set("a", 1)
	require.Zero(t, e.imbalance())
	other.remove("a")
	require.EqualValues(t, 9, e.imbalance())
}

// An endpoint that starts slowly is left out until its window is over.
func TestEndpointsThatStartSlowlyAreLeftOut(t *testing.T) {
	inTime(t, func(e *env) {
		e.guard(linear)
		e.add("a", "b")
		e.openMany(16)
		e.add("c")
		require.Equal(t, 0.1, e.share("c"))
		require.Zero(t, e.imbalance())
		pass(10*time.Second - 1)
		require.Less(t, e.share("c"), 1.0)
		require.Zero(t, e.imbalance())
		pass(time.Second)
		require.EqualValues(t, 8, e.imbalance())
		require.Equal(t, map[string]int{"c": 8}, e.openMany(8))
		require.Zero(t, e.imbalance())
	})
}

// Drained endpoints are not compared: neither those that have kept streams nor those that
// have none.
func TestDrainingEndpointsAreNotCompared(t *testing.T) {
	e := newEnv(t)
	e.add("a", "b", "c", "d")
	e.openMany(8)
	e.end("d", 2)
	e.set("c", 0)
	e.set("d", 0)
	e.openMany(4)
	require.Equal(t, map[string]int{"a": 4, "b": 4, "c": 2, "d": 0}, e.loads())
	require.Zero(t, e.imbalance())
}

// RPCs are kept from an endpoint by its penalty, so it is behind by less. Nobody is behind a
// penalty.
func TestPenaltiesFillUp(t *testing.T) {
	inTime(t, func(e *env) {
		e.guard(state.Guards{FailurePenalty: time.Second})
		e.add("a", "b")
		e.openMany(8)
		e.fail("a", 3)
		require.Equal(t, map[string]int{"a": 3}, e.penalties())
		require.Zero(t, e.imbalance())
		e.end("b", 4)
		require.EqualValues(t, 1, e.imbalance(), "b is behind the one that a has in flight")
		pass(2 * time.Second)
		require.EqualValues(t, 1, e.imbalance())
		e.load("a", 3)
		e.set("a", 1)
		require.EqualValues(t, 4, e.imbalance())
	})
}

// Weights are relative to the mean of those that are compared: a heavy endpoint that is full
// makes no more of a difference between others than they have.
func TestImbalanceIsRelativeToTheMeanWeight(t *testing.T) {
	e := newEnv(t)
	e.list("a", "b", "c")
	for a, w := range map[string]uint32{"a": 8, "b": 8, "c": 11} {
		e.set(a, w)
	}
	e.load("a", 8)
	e.set("a", 8)
	require.EqualValues(t, 9, e.imbalance(), "none holds more than 8: over 8/9 that is 9")
	e.members["c"].SetMaxInFlight(1)
	e.load("c", 1)
	e.set("c", 11)
	require.EqualValues(t, 8, e.imbalance())
	e.members["b"].SetMaxInFlight(1)
	e.load("b", 1)
	e.set("b", 8)
	require.Zero(t, e.imbalance())
}

// RPCs count what they cost, and the spread is in RPCs of their mean cost.
func TestImbalanceOfCosts(t *testing.T) {
	e := newEnv(t)
	e.add("a", "b")
	long := e.costing(12)
	require.Equal(t, state.Chosen, long.acquire())
	defer long.finish()
	e.openMany(12)
	require.Equal(t, map[string]int{"a": 12, "b": 12}, e.units())
	require.Zero(t, e.imbalance())
	long.setCost(26)
	require.Equal(t, 14/(38/13.), e.imbalance(), "14 units, of which an RPC has 38 / 13")
}

package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// take returns what has grown, by address, and requires that it all adds up.
func (e *env) take(sum *state.EndpointCounts) map[string][2]int {
	e.Helper()
	got := map[string][2]int{}
	for _, c := range e.endpointSet.TakeEndpointCounts() {
		was := got[c.Address]
		got[c.Address] = [2]int{was[0] + int(c.Picks), was[1] + int(c.Penalties)}
		sum.Picks += c.Picks
		sum.Penalties += c.Penalties
	}
	all := e.endpointSet.Counters()
	require.Equal(e, [2]uint64{all.Picks, all.Penalties}, [2]uint64{sum.Picks, sum.Penalties})
	require.NoError(e, e.ledger.Check())
	return got
}

// Picks and penalties are counted by endpoint, each once, whatever becomes of the endpoint and
// its connections. Those of other endpoint sets are theirs.
func TestCountsByEndpoint(t *testing.T) {
	inTime(t, func(e *env) {
		e.guard(state.Guards{FailurePenalty: time.Minute})
		var sum state.EndpointCounts
		require.Empty(t, e.take(&sum))
		e.add("a", "b", "c")
		other := newEnvOn(t, e.ledger)
		other.add("a", "b", "c")
		require.Equal(t, map[string][2]int{"a": {}, "b": {}, "c": {}}, e.take(&sum), "what is new is told at 0")
		require.Empty(t, e.take(&sum))
		e.openMany(6)
		other.openMany(6)
		e.members["a"].NewConnection()
		e.openMany(3)
		e.fail("a", 2)
		require.Equal(t, map[string][2]int{"a": {3, 2}, "b": {3, 0}, "c": {3, 0}}, e.take(&sum))
		require.Empty(t, e.take(&sum))

		e.openMany(2)
		e.fail("b", 1)
		e.remove("b") // with what is not taken yet
		require.EqualValues(t, 2, other.loads()["b"]-len(e.leases["b"]), "the endpoint stays")
		e.fail("b", 1)
		e.list("b")
		e.openMany(1)
		got := e.take(&sum)
		require.Equal(t, 3, got["a"][0]+got["b"][0]+got["c"][0])
		require.Equal(t, 2, got["b"][1])
		require.Equal(t, map[string][2]int{"a": {2, 0}, "b": {2, 0}, "c": {2, 0}}, other.take(&state.EndpointCounts{}))
		e.remove("c")
		e.endpointSet.Close()
		require.Empty(t, e.take(&sum))
	})
}

// Room that an RPC was given is a pick once it is taken up, on the endpoint where that is.
func TestGrantsAreCountedWhenTheyAreTakenUp(t *testing.T) {
	e := busyEnv(t, "a", "b")
	var sum state.EndpointCounts
	require.Equal(t, map[string][2]int{"a": {1, 0}, "b": {1, 0}}, e.take(&sum))
	rpcs := e.queued(2)
	e.end("a", 1)
	require.Empty(t, e.take(&sum), "granted")
	e.set("a", 0) // which takes it back
	require.Empty(t, e.take(&sum))
	e.end("b", 1)
	require.Equal(t, []int{0}, served(rpcs))
	require.Equal(t, map[string][2]int{"b": {1, 0}}, e.take(&sum))
}

// Who leaves between two calls is remembered, as is who leaves when the endpoint set closes;
// beyond a bound without the address.
func TestCountsOfManyThatLeave(t *testing.T) {
	e := newEnv(t)
	const n = 1<<14 + 7
	addrs := names(n)
	e.add(addrs...)
	e.openMany(n)
	e.endpointSet.Close()
	var sum state.EndpointCounts
	got := e.take(&sum)
	require.Len(t, got, 1<<14+1)
	require.Equal(t, [2]int{7, 0}, got[""])
	require.EqualValues(t, n, sum.Picks)
}

package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// A lease that is given back once more is counted where it was acquired, whoever
// acquires leases of the ledger since, and also after its endpoint set was closed.
func TestDoubleReleaseIsTheSetsOwn(t *testing.T) {
	one := newEnv(t)
	two := newEnvOn(t, one.ledger)
	one.add("a")
	two.add("a")
	lease, _, ok := one.readySet.Acquire()
	require.True(t, ok)
	require.True(t, lease.Release())
	for range 3 {
		two.call()
		one.call()
		two.open()
	}
	doubles := func(want ...uint64) {
		t.Helper()
		for i, e := range []*env{one, two} {
			require.Equal(t, want[i], e.endpointSet.Counters().DoubleReleases)
		}
		require.NoError(t, one.ledger.Check())
	}
	require.False(t, lease.Release())
	doubles(1, 0)
	require.False(t, lease.Fail())
	doubles(2, 0)

	live, _, ok := one.readySet.Acquire()
	require.True(t, ok)
	one.endpointSet.Close()
	require.True(t, live.Release())
	two.calls(3)
	for _, l := range []state.Lease{live, lease} {
		require.False(t, l.Release())
	}
	doubles(4, 0)
}

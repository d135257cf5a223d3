package state

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A burst of leases is not kept room for for ever: the set keeps some lease entries
// for the next leases, and these are used again.
func TestSlotsKeptAreBounded(t *testing.T) {
	v := open("")
	burst := func(n int) {
		var leases []Lease
		for range n {
			leases = append(leases, acquire(t, v))
		}
		for _, l := range leases {
			require.True(t, l.Release())
		}
	}
	burst(10)
	require.Len(t, v.set.counters.free, 10)
	burst(10)
	require.Len(t, v.set.counters.free, 10)
	burst(3 * maxFree)
	require.Len(t, v.set.counters.free, maxFree)
	require.NoError(t, v.ledger.Check())
}

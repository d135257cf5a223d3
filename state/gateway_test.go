package state_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// Endpoints that all have a gateway's address beside their own are told apart by
// their own, and a newcomer behind the gateway is none of them.
func TestGatewayAddressTellsNothing(t *testing.T) {
	for n, shares := range map[int]bool{2: true, 64: true, 65: false, 300: false} {
		l := state.Open("")
		r := l.NewEndpointSet("first")
		v := r.NewReadySet(0)
		eps := make([]state.Identity, n)
		for i := range eps {
			eps[i].Addrs = []string{fmt.Sprint("host", i), "gateway"}
		}
		for i, m := range r.Update(nil, eps) {
			v.Set(m, 1, i)
		}
		var leases []state.Lease
		for range n {
			lease, _, ok := v.Acquire()
			require.True(t, ok)
			leases = append(leases, lease)
		}
		require.NoError(t, l.Check())

		other := l.NewEndpointSet("second")
		other.Update(nil, eps)
		require.Len(t, l.Snapshot().Endpoints, n, "full matches")
		l.NewEndpointSet("third").Update(nil, []state.Identity{{Addrs: []string{"gateway", "new"}}})
		nodes := l.Snapshot().Endpoints
		require.Equal(t, shares, len(nodes) == n, "%d nodes share the gateway, %d in the ledger", n, len(nodes))
		require.NoError(t, l.Check())
		for _, lease := range leases {
			require.True(t, lease.Release())
		}
	}
}

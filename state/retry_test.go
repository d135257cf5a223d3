package state_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// A retry does not bring the endpoint that failed forward: it comes after all its
// equals that were not used since.
func TestRetryLeavesTheFailedNodeAtTheEnd(t *testing.T) {
	const n = 10
	r := state.Open("").NewEndpointSet("test")
	defer r.Close()
	v := r.NewReadySet(0)
	eps := make([]state.Identity, n)
	for i := range eps {
		eps[i].Addrs = []string{fmt.Sprint(i)}
	}
	for i, m := range r.Update(nil, eps) {
		v.Set(m, 1, i)
	}
	for range 100 {
		var tried state.Tried
		lease, failed, _ := v.Acquire()
		tried.Add(lease)
		lease.Release()
		lease, other, ok := v.AcquireElsewhere(&tried)
		require.True(t, ok)
		require.NotEqual(t, failed, other)
		lease.Release()
		require.NoError(t, r.Ledger().Check())
		for range n - 2 {
			lease, at, _ := v.Acquire()
			lease.Release()
			require.NotContains(t, []any{failed, other}, at)
		}
		lease, at, _ := v.Acquire()
		lease.Release()
		require.Equal(t, failed, at)
	}
}

// An attempt that has used nothing is taken back, and no other.
func TestTriedRemove(t *testing.T) {
	s := newSite(t)
	s.add("a", "b", "c")
	s.openMany(3)
	tried := new(state.Tried)
	for _, a := range []string{"a", "b", "c"} {
		tried.Add(s.leases[a][0])
	}
	_, _, ok := s.view.AcquireElsewhere(tried)
	require.False(t, ok)
	tried.Remove(s.leases["b"][0])
	lease, value, ok := s.view.AcquireElsewhere(tried)
	require.True(t, ok)
	require.Equal(t, "b", value)
	require.True(t, lease.Release())
	tried.Remove(lease) // over
	tried.Remove(s.leases["a"][0])
	tried.Remove(s.leases["c"][0])
	require.True(t, tried.Empty())
}

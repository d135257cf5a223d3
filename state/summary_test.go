package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// ranking is one endpoint set's list for a snapshot: the member of each endpoint, in the
// endpoints' order; a nil one is not ready.
type ranking struct {
	priority uint32
	weights  []*uint32
}

func weighs(w uint32) *uint32 { return &w }

// snapshotOf returns a ledger's with endpoints that have so many leases, as endpoint sets
// list them.
func snapshotOf(t *testing.T, loads []int, rankings ...ranking) state.Snapshot {
	l := state.Open("")
	eps := make([]state.Identity, len(loads))
	for i := range eps {
		eps[i].Addrs = []string{string(rune('a' + i))}
	}
	loader := l.NewEndpointSet("loader")
	for i, m := range loader.Update(nil, eps) {
		v := loader.NewReadySet(0)
		v.Set(m, 1, nil)
		for range loads[i] {
			lease, _, _ := v.Acquire()
			t.Cleanup(func() { lease.Release() })
		}
	}
	for _, ls := range rankings {
		r := l.NewEndpointSet("test")
		t.Cleanup(r.Close)
		v := r.NewReadySet(ls.priority)
		for i, m := range r.Update(nil, eps[:len(ls.weights)]) {
			if ls.weights[i] != nil {
				v.Set(m, *ls.weights[i], nil)
			}
		}
	}
	loader.Close()
	require.NoError(t, l.Check())
	return l.Snapshot()
}

// An endpoint is what is best of what endpoint sets say of it.
func TestEndpointStates(t *testing.T) {
	ready, draining := weighs(3), weighs(0)
	for _, tt := range []struct {
		first, second *uint32
		want          state.EndpointState
	}{
		{nil, nil, state.EndpointNotReady},
		{nil, draining, state.EndpointDraining},
		{draining, nil, state.EndpointDraining},
		{draining, draining, state.EndpointDraining},
		{draining, ready, state.EndpointReady},
		{ready, draining, state.EndpointReady},
		{nil, ready, state.EndpointReady},
		{ready, ready, state.EndpointReady},
	} {
		s := snapshotOf(t, []int{1}, ranking{0, []*uint32{tt.first}}, ranking{0, []*uint32{tt.second}})
		require.Equal(t, tt.want, s.Endpoints[0].State)
		_, takes := s.Endpoints[0].Eligible()
		require.Equal(t, tt.want == state.EndpointReady, takes)
	}
	require.Equal(t, state.EndpointDeparted, snapshotOf(t, []int{1}).Endpoints[0].State)
	require.Empty(t, snapshotOf(t, []int{0}).Endpoints)
}

// An endpoint takes RPCs by its member of the highest priority that may be chosen.
func TestEligibleMember(t *testing.T) {
	s := snapshotOf(t, []int{0},
		ranking{2, []*uint32{weighs(5)}}, ranking{1, []*uint32{weighs(7)}}, ranking{0, []*uint32{weighs(0)}}, ranking{0, []*uint32{nil}})
	m, ok := s.Endpoints[0].Eligible()
	require.True(t, ok)
	require.Equal(t, []uint32{1, 7}, []uint32{m.Priority, m.Weight})
}

func TestImbalanceOfSnapshots(t *testing.T) {
	one := weighs(1)
	for name, tt := range map[string]struct {
		loads    []int
		rankings []ranking
		want     float64
	}{
		"nobody takes":           {[]int{4, 0}, []ranking{{0, []*uint32{weighs(0), nil}}}, 0},
		"one takes":              {[]int{4, 9}, []ranking{{0, []*uint32{one, nil}}}, 0},
		"first level":            {[]int{4, 1, 9}, []ranking{{0, []*uint32{one, one}}, {1, []*uint32{nil, nil, one}}}, 3},
		"second level is usable": {[]int{4, 1, 9}, []ranking{{0, []*uint32{weighs(0)}}, {1, []*uint32{nil, one, one}}}, 8},
		"departed is left out":   {[]int{1, 3, 9}, []ranking{{0, []*uint32{one, one}}}, 2},
		"weights":                {[]int{3, 3}, []ranking{{0, []*uint32{weighs(3), one}}}, 4},
		"greatest weights":       {[]int{2, 1}, []ranking{{0, []*uint32{weighs(1 << 31), weighs(1 << 31)}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, snapshotOf(t, tt.loads, tt.rankings...).Imbalance)
		})
	}
}

package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// ranking is one roster's list for a snapshot: the member of each node, in the
// nodes' order; a nil one is not ready.
type ranking struct {
	priority uint32
	weights  []*uint32
}

func weighs(w uint32) *uint32 { return &w }

// snapshotOf returns a ledger's with nodes that have so many leases, as rosters
// list them.
func snapshotOf(t *testing.T, loads []int, rankings ...ranking) state.Snapshot {
	l := state.Open("")
	eps := make([]state.Endpoint, len(loads))
	for i := range eps {
		eps[i].Addrs = []string{string(rune('a' + i))}
	}
	loader := l.NewRoster("loader")
	for i, m := range loader.Update(nil, eps) {
		v := loader.NewView(0)
		v.Set(m, 1, nil)
		for range loads[i] {
			lease, _, _ := v.Acquire()
			t.Cleanup(func() { lease.Release() })
		}
	}
	for _, ls := range rankings {
		r := l.NewRoster("test")
		t.Cleanup(r.Close)
		v := r.NewView(ls.priority)
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

// A node is what is best of what rosters say of it.
func TestNodeStates(t *testing.T) {
	ready, draining := weighs(3), weighs(0)
	for _, tt := range []struct {
		first, second *uint32
		want          state.NodeState
	}{
		{nil, nil, state.NodeNotReady},
		{nil, draining, state.NodeDraining},
		{draining, nil, state.NodeDraining},
		{draining, draining, state.NodeDraining},
		{draining, ready, state.NodeReady},
		{ready, draining, state.NodeReady},
		{nil, ready, state.NodeReady},
		{ready, ready, state.NodeReady},
	} {
		s := snapshotOf(t, []int{1}, ranking{0, []*uint32{tt.first}}, ranking{0, []*uint32{tt.second}})
		require.Equal(t, tt.want, s.Nodes[0].State)
		_, takes := s.Nodes[0].Taking()
		require.Equal(t, tt.want == state.NodeReady, takes)
	}
	require.Equal(t, state.NodeDeparted, snapshotOf(t, []int{1}).Nodes[0].State)
	require.Empty(t, snapshotOf(t, []int{0}).Nodes)
}

// A node takes RPCs by its member of the highest priority that may be chosen.
func TestTakingMember(t *testing.T) {
	s := snapshotOf(t, []int{0},
		ranking{2, []*uint32{weighs(5)}}, ranking{1, []*uint32{weighs(7)}}, ranking{0, []*uint32{weighs(0)}}, ranking{0, []*uint32{nil}})
	m, ok := s.Nodes[0].Taking()
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

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rounds are the first n that the settings lead to.
func rounds(set settings, n int) []round {
	p := newPlan(set)
	var all []round
	for range n {
		all = append(all, p.next())
	}
	return all
}

func TestPlanFollowsFromTheSeed(t *testing.T) {
	set := settings{seed: 7, nodes: 5, round: time.Second}
	first := rounds(set, 20)
	require.Equal(t, first, rounds(set, 20))

	set.duration, set.verbose = time.Hour, true
	require.Equal(t, first, rounds(set, 20), "they do not tell the plan")

	set.seed = 8
	other := rounds(set, 20)
	for i := range first {
		require.NotEqual(t, first[i].steps, other[i].steps)
		require.NotEqual(t, first[i].calls, other[i].calls)
	}
}

// What one component draws does not depend on what others do.
func TestComponentsDrawApart(t *testing.T) {
	few, many := settings{seed: 7, nodes: 2, round: time.Second}, settings{seed: 7, nodes: 9, round: time.Second}
	a, b := rounds(few, 10), rounds(many, 10)
	for _, name := range []string{"n0 server", "n1 network", "plain", "tiered's n1"} {
		for i := range a {
			require.Equal(t, a[i].steps[streamIndex(few, name)], b[i].steps[streamIndex(many, name)], name)
		}
	}
	for i := range a {
		require.Equal(t, a[i].calls, b[i].calls)
	}
}

func streamIndex(set settings, name string) int {
	for i, l := range faultStreams(set.nodes) {
		if l.name == name {
			return i
		}
	}
	panic("no fault stream " + name)
}

// The faults of a stream come one after another, last as long as their kind may, and are over at a full quiet point.
func TestFaultsOfAPlan(t *testing.T) {
	set := settings{seed: 9, nodes: 4, round: time.Second}
	all := faultStreams(set.nodes)
	open := make([]string, len(all))
	begun, over := map[string]int{}, 0
	for _, r := range rounds(set, 60) {
		require.Len(t, r.steps, len(all))
		for i, steps := range r.steps {
			last := time.Duration(0)
			for _, s := range steps {
				require.GreaterOrEqual(t, s.at, last)
				require.LessOrEqual(t, s.at, set.round)
				last = s.at
				if s.end {
					require.Equal(t, open[i], s.fault)
					open[i] = ""
					continue
				}
				require.Empty(t, open[i], "at the begin of %s", s.fault)
				begun[s.fault]++
				if find(all[i].faults, s.fault).end != nil {
					open[i] = s.fault
				}
			}
			if open[i] != "" {
				over++
				require.False(t, r.full)
				require.True(t, find(all[i].faults, open[i]).over, open[i])
			}
		}
	}
	require.Positive(t, over)
	for _, faults := range [][]fault{serverFaults, networkFaults, reportFaults, listFaults, channelFaults} {
		for _, f := range faults {
			assert.Positive(t, begun[f.name], f.name)
		}
	}
}

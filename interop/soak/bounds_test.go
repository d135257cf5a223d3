package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/state"
)

var (
	sum = place{key: "k"}
	a   = place{"k", "a"}
	b   = place{"k", "b"}
)

// placed is n attempts.
func placed(n int) []*attempt {
	all := make([]*attempt, n)
	for i := range all {
		all[i] = &attempt{}
	}
	return all
}

func TestTooHigh(t *testing.T) {
	s := sample{
		counts: counts{sum: 7, a: 6, b: 4},
		before: mark{
			placed:   map[place][]*attempt{sum: placed(4), a: placed(3), b: placed(1)},
			unplaced: map[string]int{"k": 2, "other": 100},
			begun:    map[string]int{"k": 10},
		},
		begun:     map[string]int{"k": 11, "other": 100},
		snapshots: []state.Snapshot{{ResourceKey: "k"}},
	}
	require.NoError(t, s.tooHigh())
	for p, more := range map[place]string{
		sum:                 `ledger "k" has 8 in flight, at most 7 can be: 4 were open there, 2 on their way, 1 begun since`,
		a:                   `node a of ledger "k" has 7 in flight, at most 6 can be: 3 were open there, 2 on their way, 1 begun since`,
		b:                   `node b of ledger "k" has 5 in flight, at most 4 can be: 1 were open there, 2 on their way, 1 begun since`,
		{"none", "nowhere"}: `node nowhere of ledger "none" has 1 in flight, at most 0 can be: 0 were open there, 0 on their way, 0 begun since`,
	} {
		s.counts[p]++
		assert.EqualError(t, s.tooHigh(), more)
		s.counts[p]--
	}
	s.snapshots = append(s.snapshots, state.Snapshot{ResourceKey: "k, moved"})
	s.counts[sum] = 10
	require.NoError(t, s.tooHigh(), "three may show twice")
	s.counts[sum] = 11
	assert.Error(t, s.tooHigh())
}

func TestTooLow(t *testing.T) {
	at := time.Now()
	short, long := placed(2), placed(3)
	short[0].ended, short[1].ended = at.Add(settling/2), at.Add(settling)
	long[2].ended = at.Add(settling + 1) // it was open at the sample for sure
	all := append(append([]*attempt{}, short...), long...)
	s := sample{at: at, counts: counts{sum: 3, a: 3}, before: mark{placed: map[place][]*attempt{sum: all, a: all}}}
	require.NoError(t, s.tooLow(newAttempts().openAfter))
	for _, p := range []place{sum, a} {
		s.counts[p]--
		assert.ErrorContains(t, s.tooLow(newAttempts().openAfter), p.String()+" has 2 in flight, but 3 that were open there before")
		s.counts[p]++
	}
	s.counts = counts{}
	assert.Error(t, s.tooLow(newAttempts().openAfter), "a node that is forgotten")
}

func TestCountsOfWrongLedgers(t *testing.T) {
	site := &site{
		fleet:    &fleet{owners: map[string]owner{"1": {"m", "a"}, "2": {"m", "a"}}},
		channels: []*channel{{spec: channelSpec{policy: leastconnbalancer.Config{ResourceKey: "k"}}}},
	}
	node := state.EndpointSnapshot{Addresses: []string{"1", "2"}, InFlight: 2}
	named := state.EndpointSnapshot{ID: "b", Addresses: []string{"x"}, InFlight: 1}
	got, err := countsOf([]state.Snapshot{{ResourceKey: "k", InFlight: 3, Endpoints: []state.EndpointSnapshot{node, named}}}, site)
	require.NoError(t, err)
	assert.Equal(t, counts{sum: 3, a: 2, b: 1}, got)
	got, err = countsOf([]state.Snapshot{
		{ResourceKey: "k", InFlight: 1, Endpoints: []state.EndpointSnapshot{named}},
		{ResourceKey: "k, moved", InFlight: 3, Endpoints: []state.EndpointSnapshot{node, named}},
	}, site)
	require.NoError(t, err)
	assert.Equal(t, counts{sum: 4, a: 2, b: 2}, got)

	lost, err := countsOf([]state.Snapshot{{ResourceKey: "k", InFlight: 1, Endpoints: []state.EndpointSnapshot{{InFlight: 1}}}}, site)
	require.NoError(t, err)
	assert.Equal(t, counts{sum: 1, {"k", "nowhere"}: 1}, lost)
	twice := []state.EndpointSnapshot{{Addresses: []string{"1"}}, {Addresses: []string{"2"}}}
	_, err = countsOf([]state.Snapshot{{ResourceKey: "k", Endpoints: twice}}, site)
	assert.EqualError(t, err, `ledger "k" has two nodes of a, whose endpoints always share an address or an id`)
	_, err = countsOf([]state.Snapshot{{ResourceKey: "other"}}, site)
	assert.EqualError(t, err, `there is a ledger "other" that no channel has asked for`)
	_, err = countsOf([]state.Snapshot{{ResourceKey: "k", InFlight: -1}}, site)
	assert.EqualError(t, err, `ledger "k" has -1 in flight`)
	node.InFlight = -1
	_, err = countsOf([]state.Snapshot{{ResourceKey: "k", Endpoints: []state.EndpointSnapshot{node}}}, site)
	assert.EqualError(t, err, `node ["1" "2"] of ledger "k" has -1 in flight`)
}

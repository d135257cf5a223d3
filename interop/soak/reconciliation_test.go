package main

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// balanced are parties that agree: server a holds two RPCs and b has one that is abandoned.
func balanced() reconciliation {
	return reconciliation{
		counts:    counts{sum: 3, a: 2, b: 1},
		members:   map[listing]int{{a, "r"}: 1, {a, "s"}: 1},
		listed:    map[listing]bool{{a, "r"}: true, {a, "s"}: true},
		open:      map[location]int{a: 2, b: 1},
		counted:   map[string]int{"a": 2, "b": 1},
		served:    map[string]int{"a": 2, "b": 0},
		reported:  map[string]int{"a": 2, "b": 0},
		abandoned: map[string]int{"b": 1},
		waiting:   map[string]int{"k": 0},
		streams:   map[conn]int{{listing{a, "r"}, "1"}: 2, {listing{a, "r"}, "2"}: 0, {listing{b, "r"}, "3"}: 1},
		room: map[listing]room{
			{a, "r"}: {limit: 4, inFlight: 2, most: 2, full: true},
			{b, "r"}: {limit: 3, inFlight: 1, others: 1, least: 1, most: 2},
		},
	}
}

// spoilRoom changes what the policy says of room at a node.
func (b reconciliation) spoilRoom(at location, spoil func(*room)) {
	l := listing{at, "r"}
	r := b.room[l]
	spoil(&r)
	b.room[l] = r
}

func TestReconciliationFindsWhatDiffers(t *testing.T) {
	require.NoError(t, balanced().check())
	for want, spoil := range map[string]func(*reconciliation){
		"1 attempts are still on their way to a server": func(b *reconciliation) { b.unconnected = 1 },
		`ledger "k" has 3 that wait for room`:           func(b *reconciliation) { b.waiting["k"] = 3 },
		"node b of ledger \"k\" has 1 streams and up to 1 others on a connection of r, of 3, and is taken for full: true": func(o *reconciliation) { o.spoilRoom(b, func(r *room) { r.full = true }) },
		"node a of ledger \"k\" has 2 streams and up to 2 others on a connection of r, of 5, and is taken for full: true": func(o *reconciliation) { o.spoilRoom(a, func(r *room) { r.limit = 5 }) },
		"node b of ledger \"k\" keeps room for 0 health checks and reports on a connection of r, want 1 to 2":             func(o *reconciliation) { o.spoilRoom(b, func(r *room) { r.others = 0 }) },
		"node b of ledger \"k\" keeps room for 3 health checks and reports on a connection of r, want 1 to 2":             func(o *reconciliation) { o.spoilRoom(b, func(r *room) { r.inFlight = 3 }) },
		"server a reports 3, and sees 2": func(b *reconciliation) { b.reported["a"] = 3 },
		"node b of ledger \"k\" has 1 streams and up to 1 others on a connection of r, of 2, and is taken for full: false": func(o *reconciliation) { o.spoilRoom(b, func(r *room) { r.limit = 2 }) },
		`node a of ledger "k" has 1 in flight, 2 are open`:                                                                 func(b *reconciliation) { b.counts[a] = 1 },
		`node a of ledger "k" has 2 in flight, 3 are open`:                                                                 func(b *reconciliation) { b.open[a] = 3 },
		`node b of ledger "k" has 1 in flight, 0 are open`:                                                                 func(o *reconciliation) { delete(o.open, b) },
		`node b of ledger "k" is not known, 1 are open`:                                                                    func(o *reconciliation) { delete(o.counts, b) },
		`node a of ledger "k" is no member of r, which lists it`:                                                           func(b *reconciliation) { delete(b.members, listing{a, "r"}) },
		`node a of ledger "k" is a member of r 2 times, which lists it`:                                                    func(b *reconciliation) { b.members[listing{a, "r"}] = 2 },
		`is a member of t 1 times, which lists it: false`:                                                                  func(b *reconciliation) { b.members[listing{a, "t"}] = 1 },
		"server a sees 1, 0 more are abandoned, and 2 are counted":                                                         func(b *reconciliation) { b.served["a"] = 1 },
		"server a sees 2, 0 more are abandoned, and 3 are counted":                                                         func(b *reconciliation) { b.counted["a"] = 3 },
		"server b sees 0, 0 more are abandoned, and 1 are counted":                                                         func(b *reconciliation) { b.abandoned = nil },
		"server c sees 1, 0 more are abandoned, and 0 are counted":                                                         func(b *reconciliation) { b.served["c"] = 1 },
		"server c sees 0, 1 more are abandoned, and 0 are counted":                                                         func(b *reconciliation) { b.abandoned["c"] = 1 },
		"server c sees 0, 0 more are abandoned, and 1 are counted":                                                         func(b *reconciliation) { b.counted["c"] = 1 },
	} {
		spoilt := balanced()
		spoil(&spoilt)
		assert.ErrorContains(t, spoilt.check(), want)
	}
}

// An RPC may have its stream on the connection after the one that it was picked for, and counts on that.
func TestReconciliationKnowsOfConnectionsBefore(t *testing.T) {
	moved := balanced()
	moved.spoilRoom(b, func(r *room) { r.inFlight, r.earlier = 0, 1 })
	require.NoError(t, moved.check())
	moved.spoilRoom(b, func(r *room) { r.others = 0 })
	require.ErrorContains(t, moved.check(), "keeps room for -1 health checks")
}

func TestReconciliationFindsWhatIsInFlight(t *testing.T) {
	idle := reconciliation{counts: counts{sum: 0, a: 0}, served: map[string]int{"a": 0}}
	require.NoError(t, idle.idle())
	counted := idle
	counted.counts = counts{sum: 1}
	assert.EqualError(t, counted.idle(), `ledger "k" has 1 in flight after all RPCs have ended`)
	served := idle
	served.served = maps.Clone(idle.served)
	served.served["a"] = 1
	assert.EqualError(t, served.idle(), "server a sees 1 after all RPCs have ended")
}

var (
	sum = location{key: "k"}
	a   = location{"k", "a"}
	b   = location{"k", "b"}
)

// attemptsOf is n attempts.
func attemptsOf(n int) []*attempt {
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
			connected:   map[location][]*attempt{sum: attemptsOf(4), a: attemptsOf(3), b: attemptsOf(1)},
			unconnected: map[string]int{"k": 2, "other": 100},
			begun:       map[string]int{"k": 10},
		},
		begun:     map[string]int{"k": 11, "other": 100},
		snapshots: []leastconnbalancer.Snapshot{{ResourceKey: "k"}},
	}
	require.NoError(t, s.tooHigh())
	for p, more := range map[location]string{
		sum:                 `ledger "k" has 8 in flight, at most 7 can be: 4 were open there, 2 on their way, 1 begun since, 0 given room`,
		a:                   `node a of ledger "k" has 7 in flight, at most 6 can be: 3 were open there, 2 on their way, 1 begun since, 0 given room`,
		b:                   `node b of ledger "k" has 5 in flight, at most 4 can be: 1 were open there, 2 on their way, 1 begun since, 0 given room`,
		{"none", "nowhere"}: `node nowhere of ledger "none" has 1 in flight, at most 0 can be: 0 were open there, 0 on their way, 0 begun since, 0 given room`,
	} {
		s.counts[p]++
		assert.EqualError(t, s.tooHigh(), more)
		s.counts[p]--
	}
	s.snapshots = append(s.snapshots, leastconnbalancer.Snapshot{ResourceKey: "k, moved"})
	s.counts[sum] = 10
	require.NoError(t, s.tooHigh(), "three may show twice")
	s.counts[sum] = 11
	assert.Error(t, s.tooHigh())
	s.snapshots[0].Granted, s.snapshots[1].Reserved = 1, 1
	s.counts[sum] = 12
	require.NoError(t, s.tooHigh(), "two have been given room, and may be over")
	s.counts[sum] = 13
	assert.Error(t, s.tooHigh())
}

func TestTooLow(t *testing.T) {
	at := time.Now()
	short, long := attemptsOf(2), attemptsOf(3)
	short[0].ended, short[1].ended = at.Add(endDelay/2), at.Add(endDelay)
	long[2].ended = at.Add(endDelay + 1) // it was open at the sample for sure
	all := append(append([]*attempt{}, short...), long...)
	s := sample{at: at, counts: counts{sum: 3, a: 3}, before: mark{connected: map[location][]*attempt{sum: all, a: all}}}
	require.NoError(t, s.tooLow(newAttempts().openAfter))
	for _, p := range []location{sum, a} {
		s.counts[p]--
		assert.ErrorContains(t, s.tooLow(newAttempts().openAfter), p.String()+" has 2 in flight, but 3 that were open there before")
		s.counts[p]++
	}
	s.counts = counts{}
	assert.Error(t, s.tooLow(newAttempts().openAfter), "a node that is forgotten")
}

func TestCountsOfWrongLedgers(t *testing.T) {
	e := &env{
		fleet:    &fleet{owners: map[string]owner{"1": {"m", "a"}, "2": {"m", "a"}}},
		channels: []*channel{{spec: channelSpec{policy: leastconnbalancer.Config{ResourceKey: "k"}}}},
	}
	node := leastconnbalancer.EndpointSnapshot{Addresses: []string{"1", "2"}, InFlight: 2}
	named := leastconnbalancer.EndpointSnapshot{ID: "b", Addresses: []string{"x"}, InFlight: 1}
	got, err := countsOf([]leastconnbalancer.Snapshot{{ResourceKey: "k", InFlight: 3, Endpoints: []leastconnbalancer.EndpointSnapshot{node, named}}}, e)
	require.NoError(t, err)
	assert.Equal(t, counts{sum: 3, a: 2, b: 1}, got)
	got, err = countsOf([]leastconnbalancer.Snapshot{
		{ResourceKey: "k", InFlight: 1, Endpoints: []leastconnbalancer.EndpointSnapshot{named}},
		{ResourceKey: "k, moved", InFlight: 3, Endpoints: []leastconnbalancer.EndpointSnapshot{node, named}},
	}, e)
	require.NoError(t, err)
	assert.Equal(t, counts{sum: 4, a: 2, b: 2}, got)

	lost, err := countsOf([]leastconnbalancer.Snapshot{{ResourceKey: "k", InFlight: 1, Endpoints: []leastconnbalancer.EndpointSnapshot{{InFlight: 1}}}}, e)
	require.NoError(t, err)
	assert.Equal(t, counts{sum: 1, {"k", "nowhere"}: 1}, lost)
	twice := []leastconnbalancer.EndpointSnapshot{{Addresses: []string{"1"}}, {Addresses: []string{"2"}}}
	_, err = countsOf([]leastconnbalancer.Snapshot{{ResourceKey: "k", Endpoints: twice}}, e)
	assert.EqualError(t, err, `ledger "k" has two nodes of a, whose endpoints always share an address or an id`)
	_, err = countsOf([]leastconnbalancer.Snapshot{{ResourceKey: "other"}}, e)
	assert.EqualError(t, err, `there is a ledger "other" that no channel has asked for`)
	_, err = countsOf([]leastconnbalancer.Snapshot{{ResourceKey: "k", InFlight: -1}}, e)
	assert.EqualError(t, err, `ledger "k" has -1 in flight`)
	node.InFlight = -1
	_, err = countsOf([]leastconnbalancer.Snapshot{{ResourceKey: "k", Endpoints: []leastconnbalancer.EndpointSnapshot{node}}}, e)
	assert.EqualError(t, err, `node ["1" "2"] of ledger "k" has -1 in flight`)
}

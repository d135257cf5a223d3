package main

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// balanced are books that agree: server a holds two RPCs and b has one that is abandoned.
func balanced() books {
	return books{
		counts:    counts{sum: 3, a: 2, b: 1},
		members:   map[listing]int{{a, "r"}: 1, {a, "s"}: 1},
		listed:    map[listing]bool{{a, "r"}: true, {a, "s"}: true},
		open:      map[place]int{a: 2, b: 1},
		counted:   map[string]int{"a": 2, "b": 1},
		served:    map[string]int{"a": 2, "b": 0},
		abandoned: map[string]int{"b": 1},
	}
}

func TestBooksThatDiffer(t *testing.T) {
	require.NoError(t, balanced().check())
	for want, spoil := range map[string]func(*books){
		"1 attempts are still on their way to a server":                 func(b *books) { b.unplaced = 1 },
		`node a of ledger "k" has 1 in flight, 2 are open`:              func(b *books) { b.counts[a] = 1 },
		`node a of ledger "k" has 2 in flight, 3 are open`:              func(b *books) { b.open[a] = 3 },
		`node b of ledger "k" has 1 in flight, 0 are open`:              func(o *books) { delete(o.open, b) },
		`node b of ledger "k" is not known, 1 are open`:                 func(o *books) { delete(o.counts, b) },
		`node a of ledger "k" is no member of r, which lists it`:        func(b *books) { delete(b.members, listing{a, "r"}) },
		`node a of ledger "k" is a member of r 2 times, which lists it`: func(b *books) { b.members[listing{a, "r"}] = 2 },
		`is a member of t 1 times, which lists it: false`:               func(b *books) { b.members[listing{a, "t"}] = 1 },
		"server a sees 1, 0 more are abandoned, and 2 are counted":      func(b *books) { b.served["a"] = 1 },
		"server a sees 2, 0 more are abandoned, and 3 are counted":      func(b *books) { b.counted["a"] = 3 },
		"server b sees 0, 0 more are abandoned, and 1 are counted":      func(b *books) { b.abandoned = nil },
		"server c sees 1, 0 more are abandoned, and 0 are counted":      func(b *books) { b.served["c"] = 1 },
		"server c sees 0, 1 more are abandoned, and 0 are counted":      func(b *books) { b.abandoned["c"] = 1 },
		"server c sees 0, 0 more are abandoned, and 1 are counted":      func(b *books) { b.counted["c"] = 1 },
	} {
		spoilt := balanced()
		spoil(&spoilt)
		assert.ErrorContains(t, spoilt.check(), want)
	}
}

func TestBooksThatAreNotIdle(t *testing.T) {
	idle := books{counts: counts{sum: 0, a: 0}, served: map[string]int{"a": 0}}
	require.NoError(t, idle.idle())
	counted := idle
	counted.counts = counts{sum: 1}
	assert.EqualError(t, counted.idle(), `ledger "k" has 1 in flight after all RPCs have ended`)
	served := idle
	served.served = maps.Clone(idle.served)
	served.served["a"] = 1
	assert.EqualError(t, served.idle(), "server a sees 1 after all RPCs have ended")
}

package state

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// costSpecimen is a ledger in which an RPC costs 5 units, and has just changed to that.
type costSpecimen struct {
	*Ledger
	n  *endpoint
	lc *leaseCost
}

func newCostSpecimen() costSpecimen {
	g := costSpecimen{Ledger: newLedger("")}
	r := g.NewEndpointSet("costs")
	g.n = r.Update(nil, []Identity{{Addrs: []string{"a"}}})[0].endpoint
	c := &Cost{}
	c.units.Store(3)
	g.mu.Lock()
	g.lc = g.newLease(g.n, r, g.n.members[0].connection, c).entry.rare.cost
	g.mu.Unlock()
	c.Set(5)
	return g
}

func TestCheckSeesWrongCosts(t *testing.T) {
	for name, tc := range map[string]struct {
		corrupt func(g costSpecimen)
		says    string
	}{
		"units in flight":   {func(g costSpecimen) { g.n.load.units++ }, "its leases cost 5 units, 6 are counted"},
		"units of a lease":  {func(g costSpecimen) { g.lc.units-- }, "its leases cost 4 units, 5 are counted"},
		"more than one":     {func(g costSpecimen) { g.extraUnits-- }, "leases cost 4 units more than one each, and 1 have changed lately: 3 and 1 are counted"},
		"changed lately":    {func(g costSpecimen) { g.cooling.Remove(g.lc.element) }, "and 1 have changed lately: 4 and 0 are counted"},
		"changed, unknown":  {func(g costSpecimen) { g.lc.cooling.Store(false) }, "changed lately: false"},
		"lease of a cost":   {func(g costSpecimen) { g.lc.lease = nil }, "is known to its cost"},
		"no lease of it":    {func(g costSpecimen) { g.lc.cost.begun = false }, "is known to its cost: false"},
		"size":              {func(g costSpecimen) { g.costs.leases[4]++ }, "leases are counted by other costs than they have"},
		"largest":           {func(g costSpecimen) { g.costs.most[5] = 0 }, "the largest cost is 5 units, not 1"},
		"largest too large": {func(g costSpecimen) { g.costs.most[5] = 6 }, "the largest cost is 5 units, not 6"},
		"clock":             {func(g costSpecimen) { g.clock.ticking = false }, "the clock rests"},
		"changes later":     {func(g costSpecimen) { g.lc.due = 0; g.cooling.PushFront(&leaseCost{due: time.Second}) }, "a cost is to change out of order"},
		"failed":            {func(g costSpecimen) { g.n.load.failed++ }, "with 0 units of penalty"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newCostSpecimen()
				require.NoError(t, g.Check())
				tc.corrupt(g)
				require.ErrorContains(t, g.Check(), tc.says)
				g.clock.timer.Stop()
			})
		})
	}
}

// Sizes are those of the units, to a 128th, for all that is allowed.
func TestCostSizes(t *testing.T) {
	last := 0
	for units := int64(1); units <= MaxCost; units++ {
		i := costSize(units)
		require.True(t, i == last || i == last+1, units)
		if units <= exactUnits {
			require.Equal(t, last+1, i)
		}
		if i != costSize(units-units/sizesPerDouble-1) {
			last = i
			continue
		}
		require.Fail(t, "more than a 128th apart", units)
	}
	require.LessOrEqual(t, last, costSizeOfMost)
	l := newLedger("")
	require.EqualValues(t, 1, l.largestCost())
	l.costs = &costSizes{}
	for _, units := range []int64{1, 700, 1_000_000, 999_999} {
		l.costs.add(units)
	}
	require.EqualValues(t, 1_000_000, l.largestCost())
	l.costs.remove(1_000_000)
	require.EqualValues(t, 1_000_000, l.largestCost(), "about as much as one that is there")
	l.costs.remove(999_999)
	require.EqualValues(t, 700, l.largestCost())
	l.costs.remove(700)
	require.EqualValues(t, 1, l.largestCost())
}

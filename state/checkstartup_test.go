package state

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// startSpecimen is an endpoint set that starts up: a is ready, b and c connect, and RPCs
// wait for them; one may take up its place on d.
type startSpecimen struct {
	*Ledger
	set        *EndpointSet
	readySet   *ReadySet
	a, b, c, d *Member
	onB, onC   *reservation
	start      *startup
	heap       *connecting
	ends       []context.CancelFunc
}

func newStartSpecimen() *startSpecimen {
	g := &startSpecimen{Ledger: newLedger("")}
	g.set = g.NewEndpointSet("start")
	g.readySet = g.set.NewReadySet(0)
	ms := g.set.Update(nil, []Identity{{Addrs: []string{"a"}}, {Addrs: []string{"b"}}, {Addrs: []string{"c"}}, {Addrs: []string{"d"}}})
	g.a, g.b, g.c, g.d = ms[0], ms[1], ms[2], ms[3]
	g.readySet.Set(g.a, 1, "a")
	for _, m := range ms[1:] {
		g.readySet.SetConnecting(m, 1, time.Now().Add(time.Hour))
	}
	for range 4 {
		ctx, end := context.WithCancel(context.Background())
		g.ends = append(g.ends, end) // not called: what is corrupt is left alone
		g.set.AcquireOrQueue(ctx, nil, g.readySet)
	}
	g.readySet.Set(g.d, 1, "d")
	of := func(m *Member) (one *reservation) {
		for one = range m.connecting.reserved {
		}
		return one
	}
	g.onB, g.onC = of(g.b), of(g.c)
	g.start, g.heap = g.set.startup, &g.readySet.connecting
	return g
}

func TestCheckSeesEachCorruptionOfAStartup(t *testing.T) {
	for name, row := range map[string]struct {
		corrupt func(*startSpecimen)
		says    string
	}{
		"nobody starts":      {func(g *startSpecimen) { delete(g.starting, g.set) }, "starting: true, known: false"},
		"lost start-up":      {func(g *startSpecimen) { g.set.startup = nil; delete(g.starting, g.set) }, "3 reservations after the start-up"},
		"in flight":          {func(g *startSpecimen) { g.start.inFlight++ }, "4 of 5 in flight"},
		"not registered":     {func(g *startSpecimen) { reservations.remove(g.onB.rpc, g.onB) }, "a reservation without its lease"},
		"lost reservation":   {func(g *startSpecimen) { delete(g.start.reservations, g.onB.rpc) }, "3 of 2 reservations"},
		"reservation of two": {func(g *startSpecimen) { g.start.reservations[g.onB.rpc] = g.onC }, "without its lease"},
		"lease elsewhere":    {func(g *startSpecimen) { g.onB.lease = g.onC.lease }, "without its lease"},
		"lease is over":      {func(g *startSpecimen) { g.onB.lease.gen-- }, "without its lease"},
		"nobody's":           {func(g *startSpecimen) { g.onB.member = nil }, "without its lease"},
		"nothing to it":      {func(g *startSpecimen) { g.a.connecting = &memberConnecting{readySet: g.readySet, index: notConnecting} }, "neither connects nor is reserved"},
		"ready elsewhere":    {func(g *startSpecimen) { g.d.connecting.readySet = &ReadySet{} }, "that nobody can take up"},
		"score":              {func(g *startSpecimen) { g.b.connecting.score = 1 }, "score 1"},
		"no weight":          {func(g *startSpecimen) { g.b.connecting.weight = 0 }, "with weight 0"},
		"index":              {func(g *startSpecimen) { g.b.connecting.index = 1 - g.b.connecting.index }, "it connects at"},
		"order":              {func(g *startSpecimen) { g.heap.members[0].connecting.rank = math.MaxUint32 }, "in the heap"},
		"heap":               {func(g *startSpecimen) { g.heap.members = g.heap.members[:1] }, "member"},
		"clock":              {func(g *startSpecimen) { g.clock.ticking = false }, "the clock rests"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newStartSpecimen()
				require.NoError(t, g.Check())
				row.corrupt(g)
				require.ErrorContains(t, g.Check(), row.says)
			})
		})
	}
}

package state

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// specimen is a ledger with all that Check looks at: an endpoint set whose members
// start slowly and have penalties, one whose RPCs wait or were granted room, an id,
// free lease entries, and an endpoint that has left.
type specimen struct {
	*Ledger
	slow      *ReadySet
	penalized *endpoint
	due       *Member // starts slowly and is empty
	busy      *Member // starts slowly, and has RPCs in flight
	named     *endpoint
	gone      *endpoint // has leases only
	full      *ReadySet
	atCap     *Member
	granted   *waiter
	queued    []*waiter
}

func newSpecimen(t *testing.T) *specimen {
	g := &specimen{Ledger: newLedger("")} // not in the registry
	g.slow = g.readySet("slow", Guards{
		FailurePenalty: time.Hour,
		SlowStart:      SlowStart{Window: time.Hour, MinWeightPercent: 10, Aggression: 1},
	})
	var leases []Lease
	for range 12 {
		leases = append(leases, acquire(t, g.slow))
	}
	g.busy = leases[0].entry.endpoint.members[0]
	g.penalized = leases[1].entry.endpoint
	for _, lease := range leases {
		if n := lease.entry.endpoint; n != g.busy.endpoint && n != g.penalized {
			lease.Release()
		}
	}
	leases[1].Fail()
	guards := g.slow.set.guards
	guards.FailurePenalty *= 2
	g.slow.set.SetGuards(guards)
	oldest := g.penalized.leases.oldest
	Lease{oldest, oldest.gen}.Fail()

	ms := g.slow.set.Update(nil, []Identity{{ID: "u", Addrs: []string{"x", "y"}}, {Addrs: []string{"gone"}}})
	g.named, g.gone = ms[0].endpoint, ms[1].endpoint
	g.mu.Lock()
	g.newLease(g.gone, g.slow.set, ms[1].connection, nil)
	g.mu.Unlock()
	g.slow.set.Update(ms[1:], nil)

	g.full = g.readySet("full", Guards{})
	for m := range g.full.set.members {
		m.SetMaxInFlight(1)
	}
	held := acquire(t, g.full)
	for g.full.order.Len() > 0 {
		acquire(t, g.full)
	}
	g.full.set.SetQueueSets(g.full)
	g.mu.Lock()
	for range 4 {
		g.queued = append(g.queued, g.full.set.newWaiter(make(chan struct{}), nil))
	}
	g.mu.Unlock()
	held.Release()
	g.granted, g.queued = g.queued[0], g.queued[1:]
	g.atCap = g.granted.member
	acquire(t, g.slow).Release() // which leaves a free lease entry
	for m := range g.slow.set.members {
		if m.ramping() && m.endpoint.load.sum() == 0 && (g.due == nil || m.endpoint.number < g.due.endpoint.number) {
			g.due = m
		}
	}
	return g
}

// readySet returns one of a new endpoint set, with six members.
func (g *specimen) readySet(name string, guards Guards) *ReadySet {
	r := g.NewEndpointSet(name)
	r.SetGuards(guards)
	v := r.NewReadySet(0)
	for _, a := range []string{"a", "b", "c", "d", "e", "f"} {
		m := r.Update(nil, []Identity{{Addrs: []string{name + a}}})[0]
		m.StartSlowly()
		v.Set(m, 1, a)
	}
	return v
}

func (g *specimen) leasesOfBusy() *leaseList { return &g.busy.endpoint.leases }
func (g *specimen) queue() *queue            { return &g.full.set.queue }

// corruptions break one thing each. Check must say so.
var corruptions = map[string]struct {
	corrupt func(g *specimen)
	says    string
}{
	"in flight":         {func(g *specimen) { g.gone.load.inFlight++ }, "the terms in flight add up to"},
	"in flight below 0": {func(g *specimen) { g.gone.load.inFlight = -1 }, "with 0 units of penalty"},
	"in flight, listed": {func(g *specimen) { g.gone.load.inFlight++; g.leases++ }, "1 leases with 2 in flight"},
	"live total":        {func(g *specimen) { g.leases-- }, "the terms in flight add up to"},
	"lost endpoint":     {func(g *specimen) { delete(g.endpoints, g.gone) }, "the terms in flight add up to"},
	"useless endpoint":  {func(g *specimen) { g.endpoints[&endpoint{ledger: g.Ledger}] = struct{}{} }, "without members and leases"},

	"lost lease":            {func(g *specimen) { g.leasesOfBusy().remove(g.leasesOfBusy().oldest) }, "1 leases with 2 in flight"},
	"lost newest lease":     {func(g *specimen) { g.leasesOfBusy().newest = g.leasesOfBusy().oldest }, "2 leases with 2 in flight"},
	"lease of another":      {func(g *specimen) { g.leasesOfBusy().oldest.endpoint = g.penalized }, "is another's"},
	"order of leases":       {func(g *specimen) { g.leasesOfBusy().oldest.start++ }, "lease 2 of 2 is out of order"},
	"lease's neighbour":     {func(g *specimen) { g.leasesOfBusy().newest.prev = nil }, "lease 2 of 2 is out of order"},
	"leases in a circle":    {func(g *specimen) { g.leasesOfBusy().newest.next = g.leasesOfBusy().oldest }, "lease 3 of 2 is out of order"},
	"free entry in use":     {func(g *specimen) { g.slow.set.counters.free[0].endpoint = g.penalized }, "free lease entry 0 holds"},
	"free entry's next":     {func(g *specimen) { g.slow.set.counters.free[0].next = g.leasesOfBusy().oldest }, "free lease entry 0 holds"},
	"free entry's previous": {func(g *specimen) { g.slow.set.counters.free[0].prev = g.leasesOfBusy().oldest }, "free lease entry 0 holds"},
	"free entries":          {func(g *specimen) { g.slow.set.counters.free = slices.Repeat(g.slow.set.counters.free[:1], maxFree+1) }, "1025 free lease entries"},

	"id of another":          {func(g *specimen) { g.byID["u"] = g.gone }, `id "u" leads to`},
	"id of no endpoint":      {func(g *specimen) { g.byID["v"] = &endpoint{id: "v"} }, `id "v" leads to`},
	"id not indexed":         {func(g *specimen) { delete(g.byID, "u") }, "not found by its id"},
	"address not indexed":    {func(g *specimen) { delete(g.byAddr, "y") }, "is not found by"},
	"address of another":     {func(g *specimen) { g.byAddr["zz"] = []*endpoint{g.gone} }, `address "zz" leads to`},
	"address of no endpoint": {func(g *specimen) { g.byAddr["zz"] = []*endpoint{{addrs: []string{"zz"}}} }, `address "zz" leads to`},
	"address nobody lists": {func(g *specimen) {
		g.named.addrs = []string{"x", "y", "z"}
		g.byAddr["z"] = []*endpoint{g.named}
	}, "no member lists"},

	"count of an address": {func(g *specimen) { g.named.listed[1]++ }, `1 members list "y"`},
	"order of addresses":  {func(g *specimen) { slices.Reverse(g.named.addrs) }, "its addresses are out of order"},
	"address that is missing": {func(g *specimen) {
		g.named.addrs, g.named.listed = g.named.addrs[:1], g.named.listed[:1]
		delete(g.byAddr, "y")
	}, "it lacks some of"},

	"set of a member":         {func(g *specimen) { g.named.sets[0] = g.full.set }, "another endpoint or endpoint set"},
	"member's endpoint":       {func(g *specimen) { g.due.endpoint = g.named }, "member of another endpoint"},
	"member without endpoint": {func(g *specimen) { g.due.endpoint = nil }, "is not its endpoint's"},
	"member twice":            {func(g *specimen) { n := g.due.endpoint; n.members = append(n.members, g.due) }, "two members of endpoint set"},
	"member that leaves":      {func(g *specimen) { g.due.leaving = true }, "still leaving"},
	"member that is new":      {func(g *specimen) { g.due.newcomer = true }, "still leaving or new"},
	"lost member":             {func(g *specimen) { delete(g.slow.set.members, g.due) }, `endpoint set "slow" does not have`},
	"lost place":              {func(g *specimen) { g.due.endpoint.places = nil }, "0 places for 1 members"},
	"place of another":        {func(g *specimen) { g.due.endpoint.places[0].handle++ }, "has no place at handle"},
	"handle":                  {func(g *specimen) { g.due.handle, g.busy.handle = g.busy.handle, g.due.handle }, "is not at handle"},
	"ready set of no one":     {func(g *specimen) { g.slow.set.readySets = nil }, "is in the order of no ready set"},
	"another member's handle": {func(g *specimen) { g.due.readySet.order.SetValue(g.due.handle, g.busy.choice()) }, "is not at handle"},
	"lost from the order":     {func(g *specimen) { g.full.order.Append(1, 0, g.due.choice()) }, "-1 members more"},
	"load in the order": {func(g *specimen) {
		g.granted.member.limit = 9
		g.granted.member.endpoint.updateEligibility()
		g.granted.member.endpoint.load.penalty = 2
	}, "stands at"},

	"no handle":           {func(g *specimen) { g.due.handle = order.None }, "eligible: true, full: false, busy: false, at -1"},
	"draining":            {func(g *specimen) { g.due.weight = 0 }, "eligible: false"},
	"not ready":           {func(g *specimen) { g.due.readySet = nil }, "eligible: false"},
	"another weight":      {func(g *specimen) { g.due.weight = 7 }, "stands in class"},
	"full for nothing":    {func(g *specimen) { g.due.full = true }, "full: true"},
	"not full":            {func(g *specimen) { g.atCap.full = false }, "eligible: true, full: false, busy: true"},
	"not busy":            {func(g *specimen) { g.atCap.busy = false }, "eligible: true, full: true, busy: false"},
	"full, not suspended": {func(g *specimen) { g.atCap.suspended = order.None }, "suspended at -1"},
	"suspended, not full": {func(g *specimen) { g.due.suspended = g.due.handle }, "suspended at"},
	"overfull, but busy":  {func(g *specimen) { g.atCap.enterFallback(&g.full.overfull, false) }, "busy: true, at -1, suspended at"},
	"limit":               {func(g *specimen) { g.atCap.limit = 2 }, "1 of 2 in flight and a penalty of 0: eligible: true, full: true"},
	"limit below":         {func(g *specimen) { g.busy.limit = 1 }, "2 of 1 in flight and a penalty of 0: eligible: true, full: false"},
	"again when full":     {func(g *specimen) { g.atCap.endpoint.again.rpcs.below = 0 }, "again at"},
	"again when busy":     {func(g *specimen) { g.atCap.endpoint.again.inFlight.below = 0 }, "again at"},
	"again at the limit":  {func(g *specimen) { g.busy.limit, g.busy.endpoint.again.rpcs.from = 5, 9 }, "again at {rpcs:{from:9"},
	"eligible ones":       {func(g *specimen) { g.slow.eligible++ }, "ready set with 7 eligible, 0 full and 0 busy has 6, 0 and 0"},
	"full ones":           {func(g *specimen) { g.full.full-- }, "ready set with 6 eligible, 5 full and 6 busy has 6, 6 and 6"},
	"busy ones":           {func(g *specimen) { g.full.busy-- }, "ready set with 6 eligible, 6 full and 5 busy has 6, 6 and 6"},
	"granted ones":        {func(g *specimen) { g.granted.member.endpoint.granted++ }, "1 of its leases are granted, 2 are counted"},

	"highest in flight":     {func(g *specimen) { g.gone.highest = 0 }, "in flight of at most 0"},
	"failures":              {func(g *specimen) { g.gone.failures = g.gone.picks }, "failures of"},
	"penalized unknown":     {func(g *specimen) { delete(g.Ledger.penalized, g.penalized) }, "with penalty 2 is penalized: false"},
	"penalized for nothing": {func(g *specimen) { g.Ledger.penalized[g.gone] = struct{}{} }, "with penalty 0 is penalized: true"},
	"penalized and gone":    {func(g *specimen) { g.Ledger.penalized[&endpoint{}] = struct{}{} }, "is gone and penalized"},
	"order of penalties":    {func(g *specimen) { g.penalized.penalties[0].until *= 2 }, "is out of order"},
	"penalties at a time":   {func(g *specimen) { ps := g.penalized.penalties; ps[0].until = ps[1].until }, "is out of order"},
	"penalty of nothing":    {func(g *specimen) { g.penalized.penalties[0].units = 0 }, "penalty 0 of 0 units"},
	"units of penalty":      {func(g *specimen) { g.penalized.penalties[0].units++ }, "with 3 units of penalty"},
	"penalty term":          {func(g *specimen) { g.penalized.load.penalty++ }, "with 2 units of penalty"},
	"ramp unknown":          {func(g *specimen) { g.due.removeRamp() }, "ramps: true, at -1"},
	"ramp for nothing":      {func(g *specimen) { g.atCap.addRamp() }, "ramps: false, at 0"},
	"ramp of another":       {func(g *specimen) { g.slow.set.ramps[0] = g.slow.set.ramps[1] }, "its ramp 0 at"},
	"ramp too late":         {func(g *specimen) { g.slow.set.ramps[1].nextStep++ }, "its ramp 1 at"},
	"ramps too many":        {func(g *specimen) { g.slow.set.ramps = append(g.slow.set.ramps, g.slow.set.ramps[5]) }, "its ramp 6 at"},
	"ramps unknown":         {func(g *specimen) { delete(g.ramping, g.slow.set) }, "with 6 ramps is known to have some: false"},
	"ramps of no one":       {func(g *specimen) { g.ramping[&EndpointSet{}] = struct{}{} }, "is gone and ramps"},
	"ramps":                 {func(g *specimen) { g.ramps++ }, "6 members ramp, 7 are known to"},
	"closed with waiters":   {func(g *specimen) { g.full.set.closed = true }, "is closed, and 4 RPCs wait"},
	"clock with ramps":      {func(g *specimen) { g.clock.ticking = false }, "the clock rests"},
	"clock with penalties":  {func(g *specimen) { g.slow.set.SetGuards(Guards{}); g.clock.ticking = false }, "the clock rests"},

	"waiting":             {func(g *specimen) { g.waiting++ }, "3 RPCs queued, 4 waiting"},
	"lost from the queue": {func(g *specimen) { g.queue().queued.list.Remove(g.queued[1].element) }, "2 RPCs queued, 3 waiting"},
	"order in the queue":  {func(g *specimen) { g.queued[0].arrival = 9 }, "is out of order"},
	"place in the queue":  {func(g *specimen) { g.queued[0].element = g.queued[1].element }, "is out of order"},
	"waiter of no RPC":    {func(g *specimen) { delete(g.queue().waiters, g.queued[0].rpc) }, "is out of order"},
	"waiter of another":   {func(g *specimen) { g.queue().waiters[g.queued[0].rpc] = g.queued[1] }, "is out of order"},
	"granted nothing":     {func(g *specimen) { g.granted.lease = Lease{} }, "granted: true"},
	"granted and over":    {func(g *specimen) { g.granted.lease.gen-- }, "was granted nothing"},
	"granted away":        {func(g *specimen) { g.granted.member = &Member{endpoint: g.atCap.endpoint} }, "was granted nothing"},
	"granted elsewhere":   {func(g *specimen) { g.granted.readySet = g.slow }, "was granted nothing"},
	"waiter in two":       {func(g *specimen) { g.queue().waiters[make(chan struct{})] = g.queued[0] }, "is in phase 0, granted: false"},
	"served elsewhere":    {func(g *specimen) { g.queue().queueSets = nil }, "was granted nothing"},
	"lapsed in the queue": {func(g *specimen) { g.queued[0].phase.Store(phaseLapsed) }, "is out of order"},
	"lost waiter": {func(g *specimen) {
		delete(g.queue().granted, g.granted)
		g.granted.phase.Store(phaseOver)
		g.granted.lease = Lease{}
	}, "4 waiters, 3 queued"},
	"not registered":    {func(g *specimen) { waits.remove(g.queued[0].rpc, g.queued[0]) }, "is in phase 0"},
	"retry without end": {func(g *specimen) { g.queued[0].tried = []*endpoint{g.gone} }, "is out of order"},
	"timeout":           {func(g *specimen) { g.setTimeout(g.granted, 1); g.granted.timeout = 1 }, "timeout 0 is out of order"},
	"clock with waits": {func(g *specimen) {
		g.slow.set.SetGuards(Guards{})
		g.slow.set.Close()
		g.setTimeout(g.granted, 1)
		g.clock.ticking = false
		clear(g.Ledger.penalized)
		g.penalized.penalties, g.penalized.load.penalty = nil, 0
	}, "the clock rests"},
	"room": {func(g *specimen) {
		g.slow.set.queue.queueSets = []*ReadySet{g.slow}
		g.slow.set.newWaiter(make(chan struct{}), nil)
	}, "wait while there is room"},
	"room in the second": {func(g *specimen) { g.queue().queueSets = []*ReadySet{g.full, g.slow} }, "wait while there is room"},
}

func TestCheckSeesEachCorruption(t *testing.T) {
	for name, tc := range corruptions {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newSpecimen(t)
				require.NoError(t, g.Check())
				tc.corrupt(g)
				require.ErrorContains(t, g.Check(), tc.says)
			})
		})
	}
}

package state

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// guarded is a ledger with what guards leave: an endpoint set whose members ramp and
// have penalties, and one whose RPCs wait or were granted room.
type guarded struct {
	*Ledger
	ramps   *ReadySet
	fined   *endpoint
	due     *Member // ramps, is empty and waits for its turn
	busy    *Member // ramps, and has an RPC in flight
	waits   *ReadySet
	full    *Member
	granted *waiter
	line    []*waiter
}

func newGuarded(t *testing.T) *guarded {
	g := &guarded{Ledger: newLedger("")} // not in the registry
	g.ramps = g.view("ramps", Guards{FailurePenalty: time.Hour, SlowStart: SlowStart{Window: time.Hour, MinWeightPercent: 10, Aggression: 1}})
	var leases []Lease
	for range 12 {
		leases = append(leases, acquire(t, g.ramps))
	}
	g.busy = leases[0].entry.endpoint.members[0]
	g.fined = leases[1].entry.endpoint
	for _, lease := range leases {
		if n := lease.entry.endpoint; n != g.busy.endpoint && n != g.fined {
			lease.Release()
		}
	}
	leases[1].Fail()
	guards := g.ramps.set.guards
	guards.FailurePenalty *= 2
	g.ramps.set.SetGuards(guards)
	g.leaseOn(g.fined).Fail()
	g.waits = g.view("waits", Guards{})
	for m := range g.waits.set.members {
		m.SetMaxInFlight(1)
	}
	held := acquire(t, g.waits)
	for g.waits.order.Len() > 0 {
		acquire(t, g.waits)
	}
	g.waits.set.SetQueueSets(g.waits)
	g.mu.Lock()
	for range 4 {
		g.line = append(g.line, g.waits.set.enqueue(make(chan struct{})))
	}
	g.mu.Unlock()
	held.Release()
	g.granted, g.line = g.line[0], g.line[1:]
	g.full = g.granted.member
	acquire(t, g.ramps).Release() // which leaves a free lease entry
	g.due = g.ramps.waits.members[0]
	return g
}

// ready set returns one of a new endpoint set, with six members.
func (g *guarded) view(name string, guards Guards) *ReadySet {
	r := g.NewEndpointSet(name)
	r.SetGuards(guards)
	v := r.NewReadySet(0)
	var eps []Identity
	for _, a := range []string{"a", "b", "c", "d", "e", "f"} {
		eps = append(eps, Identity{Addrs: []string{name + a}})
	}
	for i, m := range r.Update(nil, eps) {
		m.StartSlowly()
		v.Set(m, 1, i)
	}
	return v
}

// leaseOn returns a live lease of the endpoint.
func (g *guarded) leaseOn(n *endpoint) Lease {
	for _, s := range g.leaseEntries {
		if s.endpoint == n {
			return Lease{s, s.gen}
		}
	}
	return Lease{}
}

func (g *guarded) queue() *queue { return &g.waits.set.queue }

// guardCorruptions break one thing each; Check must say so.
var guardCorruptions = map[string]struct {
	corrupt func(g *guarded)
	says    string
}{
	"slot's place":         {func(g *guarded) { g.leaseEntries[0].index = 1 }, "slot 0 is not at its place"},
	"lost slot":            {func(g *guarded) { g.leaseEntries = g.leaseEntries[:len(g.leaseEntries)-1] }, "slots in use and"},
	"slot in use":          {func(g *guarded) { g.leaseEntries[g.free[0].index].endpoint = g.fined }, "slots in use and"},
	"lost free slot":       {func(g *guarded) { g.free = g.free[1:] }, "slots in use and"},
	"fined unknown":        {func(g *guarded) { delete(g.Ledger.penalized, g.fined) }, "with penalty 2 is fined: false"},
	"fined for nothing":    {func(g *guarded) { g.Ledger.penalized[g.busy.endpoint] = struct{}{} }, "with penalty 0 is fined: true"},
	"fined and gone":       {func(g *guarded) { g.Ledger.penalized[&endpoint{}] = struct{}{} }, "is gone and fined"},
	"waiting":              {func(g *guarded) { g.waiting++ }, "3 RPCs in line, 4 waiting"},
	"lost from the line":   {func(g *guarded) { g.queue().line.Remove(g.line[1].at) }, "2 RPCs in line, 3 waiting"},
	"ramp unknown":         {func(g *guarded) { delete(g.ramping, g.due) }, "6 members ramp, 5 are known to"},
	"ramp for nothing":     {func(g *guarded) { g.ramping[g.full] = struct{}{} }, "6 members ramp, 7 are known to"},
	"clock with ramps":     {func(g *guarded) { g.clock.ticking = false }, "the clock rests"},
	"clock with penalties": {func(g *guarded) { g.ramps.set.SetGuards(Guards{}); g.clock.ticking = false }, "the clock rests"},

	"order of fines":   {func(g *guarded) { g.fined.penalties[0].until *= 2 }, "is out of order"},
	"fines at a time":  {func(g *guarded) { g.fined.penalties[0].until = g.fined.penalties[1].until }, "is out of order"},
	"fine of nothing":  {func(g *guarded) { g.fined.penalties[0].units = 0 }, "fine 0 of 0 units"},
	"penalty":          {func(g *guarded) { g.fined.penalties[0].units++ }, "and penalty 2, fines 3"},
	"load":             {func(g *guarded) { g.granted.member.endpoint.load++ }, "load 2 of count 1 and penalty 0"},
	"empty penalty":    {func(g *guarded) { g.fined.penalties = nil }, "fines 0"},
	"full for nothing": {func(g *guarded) { g.due.full = true }, "full: true, has handle"},
	"not full":         {func(g *guarded) { g.full.full = false }, "1 of 1 in flight, full: false"},
	"handle when full": {func(g *guarded) { g.full.addPlace(g.waits.order.Append(1, 1, g.full.choice())) }, "1 of 1 in flight, full: true, has handle"},
	"limit":            {func(g *guarded) { g.full.limit = 2 }, "1 of 2 in flight, full: true"},
	"limit below":      {func(g *guarded) { g.busy.limit = 1 }, "2 of 1 in flight, full: false"},

	"place":             {func(g *guarded) { g.due.place = none }, "0 in flight, has place -1"},
	"place when busy":   {func(g *guarded) { g.busy.place = 0 }, "2 in flight, has place 0"},
	"place at the full": {func(g *guarded) { g.full.place = 0 }, "ramping: false"},
	"looks from above":  {func(g *guarded) { g.full.endpoint.roomBelow = 0 }, "looks again at"},
	"looks from below":  {func(g *guarded) { g.busy.limit, g.busy.endpoint.fullAt, g.busy.endpoint.roomBelow = 5, 9, 1 }, "limit 5: its endpoint looks again at 9"},
	"looks for leaving": {func(g *guarded) { g.due.endpoint.fullAt = 2 }, "looks again at 2 and below 0"},
	"looks for empty":   {func(g *guarded) { g.busy.endpoint.roomBelow = 0 }, "and below 0"},
	"takers":            {func(g *guarded) { g.ramps.eligible++ }, "ready set with 7 takers and 0 full has 6 and 0"},
	"full ones":         {func(g *guarded) { g.waits.full-- }, "ready set with 6 takers and 5 full has 6 and 6"},
	"order of dues":     {func(g *guarded) { g.due.due = 1 << 40 }, "waits at the wrong place 1"},
	"numbers of dues":   {func(g *guarded) { g.ramps.waits.members[2].place = 1 }, "waits at the wrong place 2"},
	"due elsewhere":     {func(g *guarded) { g.ramps.waits.members[0] = g.full }, "waits at the wrong place 0"},

	"order in line":      {func(g *guarded) { g.line[0].arrival = 9 }, "is out of line"},
	"place in line":      {func(g *guarded) { g.line[0].at = g.line[1].at }, "is out of line"},
	"ticket of no RPC":   {func(g *guarded) { delete(g.queue().waiters, g.line[0].rpc) }, "is out of line"},
	"ticket of another":  {func(g *guarded) { g.queue().waiters[g.line[0].rpc] = g.line[1] }, "is out of line"},
	"granted nothing":    {func(g *guarded) { g.granted.lease = Lease{} }, "was granted nothing"},
	"granted and over":   {func(g *guarded) { g.granted.lease.gen-- }, "was granted nothing"},
	"granted away":       {func(g *guarded) { g.granted.member = &Member{endpoint: g.full.endpoint} }, "was granted nothing"},
	"granted elsewhere":  {func(g *guarded) { g.granted.member = g.busy }, "was granted nothing"},
	"ticket in two":      {func(g *guarded) { g.queue().waiters[make(chan struct{})] = g.line[0] }, "5 tickets, 3 in line, 1 granted"},
	"room":               {func(g *guarded) { g.due.set.queue.queueSets = []*ReadySet{g.ramps}; g.stand() }, "wait while there is room"},
	"room in the second": {func(g *guarded) { g.queue().queueSets = []*ReadySet{g.waits, g.ramps} }, "wait while there is room"},
}

// stand has an RPC wait in the endpoint set whose members have room.
func (g *guarded) stand() { g.ramps.set.enqueue(make(chan struct{})) }

func TestCheckSeesEachCorruptionOfGuards(t *testing.T) {
	for name, tc := range guardCorruptions {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t)
				require.NoError(t, g.Check())
				tc.corrupt(g)
				require.ErrorContains(t, g.Check(), tc.says)
			})
		})
	}
}

package state

import (
	"slices"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// Acquire chooses the member that is next and counts one more RPC in flight on its
// endpoint, in one step. It returns the
// member's value, and false when the ready set has no member to choose, or when RPCs
// wait for room or may wait for members that connect: then it is for [EndpointSet.AcquireOrQueue] to decide.
func (v *ReadySet) Acquire() (Lease, any, bool) {
	v.ledger.mu.Lock()
	if q := &v.set.queue; q.waiting()+len(q.granted) > 0 || v.set.startup != nil || v.set.closed {
		v.ledger.mu.Unlock()
		return Lease{}, nil, false
	}
	if v.young != nil {
		lease, c := v.chooseYoung(nil)
		v.ledger.mu.Unlock()
		return lease, c.value, c.connection != nil
	}
	lease, c := v.choose(&v.order, false, nil)
	v.ledger.mu.Unlock()
	return lease, c.value, c.connection != nil
}

// choice is what an order holds of a member: a pick need not look at the member
// itself, which often is in no cache.
type choice struct {
	endpoint   *endpoint
	value      any
	connection *Connection // which knows the member
}

type choiceOrder = order.Order[choice]

func (m *Member) choice() choice { return choice{m.endpoint, m.value, m.connection} }

// member returns nil for none.
func (c choice) member() *Member {
	if c.connection == nil {
		return nil
	}
	return c.connection.member
}

// choose chooses among the members in an order of v. It returns no member when there is
// none. forced says that the choice is not the ready set's own: others may be better
// and are excluded, or it is for an RPC that had to wait for what became free. cost is the
// RPC's, nil without one.
func (v *ReadySet) choose(o *choiceOrder, forced bool, cost *Cost) (Lease, choice) {
	next := o.Next(forced)
	if next == order.None {
		return Lease{}, choice{}
	}
	c := o.Value(next)
	v.picks++
	c.connection.picks++
	return v.ledger.newLease(c.endpoint, v.set, c.connection, cost), c
}

// chooseYoung is choose by what servers report, for an RPC that may use any member. What
// the order would choose is chosen unless a member that has reported just now, and has
// room, has less to do.
func (v *ReadySet) chooseYoung(cost *Cost) (Lease, choice) {
	l, o := v.ledger, &v.order
	exact := o.Peek()
	if exact == order.None {
		return Lease{}, choice{}
	}
	if !l.clock.used {
		l.startClock() // it may have rested
	}
	h := v.young.choose(o, exact, v.eligible, l.unitsOfRPC(), l.clock.now)
	o.Take(h, h != exact)
	c := o.Value(h)
	v.picks++
	c.connection.picks++
	return l.newLease(c.endpoint, v.set, c.connection, cost), c
}

// chooseExcluding is choose among the members whose endpoints were not tried.
func (v *ReadySet) chooseExcluding(tried []*endpoint, o *choiceOrder, forced bool, cost *Cost) (lease Lease, c choice) {
	if len(tried) == 0 {
		return v.choose(o, forced, cost)
	}
	var excluded []order.Handle
	for _, m := range v.membersOf(tried) {
		if in, h := m.place(); in == o {
			excluded = append(excluded, h)
		}
	}
	o.Excluding(excluded, func() { lease, c = v.choose(o, forced || len(excluded) > 0, cost) })
	return lease, c
}

// choosePenalized is choose among the members that are full by penalties alone, and below
// their caps all the same.
func (v *ReadySet) choosePenalized(cost *Cost) (lease Lease, c choice) {
	var excluded []order.Handle
	if v.overfull.Len() > 0 {
		for m := range v.set.members {
			if m.fallbackIn == &v.overfull && m.endpoint.load.rpcs() >= m.limit {
				excluded = append(excluded, m.fallback)
			}
		}
	}
	v.overfull.Excluding(excluded, func() { lease, c = v.choose(&v.overfull, true, cost) })
	return lease, c
}

// membersOf returns the members of endpoints that v has with a weight above 0.
func (v *ReadySet) membersOf(endpoints []*endpoint) []*Member {
	var ms []*Member
	for _, n := range endpoints {
		if n.ledger != v.ledger {
			continue // the ready set has moved since
		}
		if m := n.memberOf(v.set); m != nil && m.eligibleIn == v {
			ms = append(ms, m)
		}
	}
	return ms
}

// chooseIn chooses among the members whose endpoints were not tried, in the first
// ready set that has one with room. Without tries, later ready sets are for the room
// that the first one lacks: where it has nobody at a cap, it alone counts. For forced
// see choose.
//
// When none has room and nobody is busy, penalties are all that is in the way, and
// take no room: RPCs fail as fast as servers answer, instead of waiting for servers
// that have nothing to do.
func chooseIn(sets []*ReadySet, tried []*endpoint, forced bool, cost *Cost) (_ Lease, _ *Member, full bool) {
	busy := false
	for i, v := range sets {
		var lease Lease
		var c choice
		if i == 0 && v.young != nil && len(tried) == 0 && !forced {
			lease, c = v.chooseYoung(cost)
		} else {
			lease, c = v.chooseExcluding(tried, &v.order, forced, cost)
		}
		if c.connection != nil {
			return lease, c.member(), false
		}
		full, busy = full || v.full > 0, busy || v.busy > 0
		if !full && len(tried) == 0 {
			break
		}
	}
	if !full || busy {
		return Lease{}, nil, full
	}
	for _, v := range sets {
		if lease, c := v.chooseExcluding(tried, &v.overfull, forced, cost); c.connection != nil {
			return lease, c.member(), false
		}
	}
	return Lease{}, nil, true
}

// roomIn reports whether chooseIn would choose one. It costs O(1) for each ready set
// and tried endpoint.
func roomIn(sets []*ReadySet, tried []*endpoint) bool {
	full, busy, overfull := false, false, false
	for _, v := range sets {
		withRoom, withPenalties := v.order.Len(), v.overfull.Len()
		for _, m := range v.membersOf(tried) {
			switch in, _ := m.place(); in {
			case &v.order:
				withRoom--
			case &v.overfull:
				withPenalties--
			}
		}
		if withRoom > 0 {
			return true
		}
		full, busy, overfull = full || v.full > 0, busy || v.busy > 0, overfull || withPenalties > 0
		if !full && len(tried) == 0 {
			break
		}
	}
	return overfull && !busy
}

// othersReady reports whether ready sets have a member, full or not, whose endpoint
// was not tried.
func othersReady(sets []*ReadySet, tried []*endpoint) bool {
	return slices.ContainsFunc(sets, func(v *ReadySet) bool { return v.eligible > len(v.membersOf(tried)) })
}

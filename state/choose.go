package state

import (
	"slices"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// Acquire chooses a member with the lowest (in_flight + penalty + 1) / weight
// and counts one more RPC in flight on its endpoint, in one step. It returns the
// member's value, and false when the ready set has no member to choose, or when RPCs
// wait for room: then it is for [EndpointSet.AcquireOrQueue] to decide.
func (v *ReadySet) Acquire() (Lease, any, bool) {
	v.ledger.mu.Lock()
	if q := &v.set.queue; q.waiting()+len(q.granted) > 0 {
		v.ledger.mu.Unlock()
		return Lease{}, nil, false
	}
	lease, c := v.choose(nil)
	v.ledger.mu.Unlock()
	return lease, c.value, c.member != nil
}

// choice is what an order holds of a member: a pick need not look at the member
// itself, which often is in no cache.
type choice struct {
	endpoint *endpoint
	value    any
	member   *Member
}

type choiceOrder = order.Order[choice]

func (m *Member) choice() choice { return choice{m.endpoint, m.value, m} }

// choose chooses among the members whose places are not excluded. It returns no
// member when there is none. Those that are excluded must be set aside.
func (v *ReadySet) choose(excluded []order.Handle) (Lease, choice) {
	first := v.order.First()
	if first == order.None {
		return Lease{}, choice{}
	}
	c := v.order.Value(first)
	if len(v.minShare.members) > 0 {
		if due := v.nextDue(); due != nil && !slices.Contains(excluded, due.handle) {
			c = due.choice()
		}
	}
	v.picks++
	return v.ledger.newLease(c.endpoint, v.set), c
}

// chooseOverfull is choose among the members that penalties alone fill.
func (v *ReadySet) chooseOverfull([]order.Handle) (Lease, choice) {
	first := v.overfull.First()
	if first == order.None {
		return Lease{}, choice{}
	}
	c := v.overfull.Value(first)
	v.picks++
	return v.ledger.newLease(c.endpoint, v.set), c
}

// chooseExcluding has choose choose among the members of an order of v whose
// endpoints were not tried.
func (v *ReadySet) chooseExcluding(tried []*endpoint, o *choiceOrder, choose func([]order.Handle) (Lease, choice)) (lease Lease, c choice) {
	if len(tried) == 0 {
		return choose(nil)
	}
	var excluded []order.Handle
	for _, m := range v.membersOf(tried) {
		if m.order == o {
			excluded = append(excluded, m.handle)
		}
	}
	o.Excluding(excluded, func() { lease, c = choose(excluded) })
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
// that the first one lacks: where it has nobody at a cap, it alone counts.
//
// When none has room and nobody is busy, penalties are all that is in the way, and
// take no room: RPCs fail as fast as servers answer, instead of waiting for servers
// that have nothing to do.
func chooseIn(sets []*ReadySet, tried []*endpoint) (_ Lease, _ *Member, full bool) {
	busy := false
	for _, v := range sets {
		if lease, c := v.chooseExcluding(tried, &v.order, v.choose); c.member != nil {
			return lease, c.member, false
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
		if lease, c := v.chooseExcluding(tried, &v.overfull, v.chooseOverfull); c.member != nil {
			return lease, c.member, false
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
			switch m.order {
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

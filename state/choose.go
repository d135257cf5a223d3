package state

import "github.com/leastconn/grpc-leastconn/state/internal/order"

// Acquire chooses the member that is next and counts one more RPC in flight on its
// endpoint, in one step. It returns the
// member's value, and false when the ready set has no member to choose, or when RPCs
// wait for room or may wait for members that connect: then it is for [EndpointSet.AcquireOrQueue] to decide.
func (v *ReadySet) Acquire() (Lease, any, bool) {
	v.ledger.mu.Lock()
	if len(v.set.queue.waiters) > 0 || v.set.startup != nil || v.set.closed {
		v.ledger.mu.Unlock()
		return Lease{}, nil, false
	}
	lease, c := v.choose(false)
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

func (m *Member) choice() choice { return choice{m.endpoint, m.value, m} }

// choose chooses among the members in the order. It returns no member when there is
// none. forced says that the choice is not the ready set's own: others may be better
// and are excluded, or it is for an RPC that had to wait for what became free.
func (v *ReadySet) choose(forced bool) (Lease, choice) {
	next := v.order.Next(forced)
	if next == order.None {
		return Lease{}, choice{}
	}
	c := v.order.Value(next)
	v.picks++
	return v.ledger.newLease(c.endpoint, v.set), c
}

// chooseExcluding is choose among the members whose endpoints were not tried.
func (v *ReadySet) chooseExcluding(tried []*endpoint) (lease Lease, c choice) {
	var excluded []order.Handle
	for _, n := range tried {
		if n.ledger != v.ledger {
			continue // the ready set has moved since
		}
		if m := n.memberOf(v.set); m != nil && m.eligibleIn == v && m.handle != order.None {
			excluded = append(excluded, m.handle)
		}
	}
	v.order.Excluding(excluded, func() { lease, c = v.choose(len(excluded) > 0) })
	return lease, c
}

// chooseIn chooses among the members whose endpoints were not tried, in the first
// ready set that has one with room. Without tries, later ready sets are for the room
// that the first one lacks: where it has nobody at a cap, it alone counts. For forced
// see choose.
func chooseIn(sets []*ReadySet, tried []*endpoint, forced bool) (_ Lease, _ *Member, full bool) {
	for _, v := range sets {
		var lease Lease
		var c choice
		if len(tried) == 0 {
			lease, c = v.choose(forced)
		} else {
			lease, c = v.chooseExcluding(tried)
		}
		if c.member != nil {
			return lease, c.member, false
		}
		if full = full || v.full > 0; !full && len(tried) == 0 {
			break
		}
	}
	return Lease{}, nil, full
}

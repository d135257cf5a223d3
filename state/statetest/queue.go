package statetest

import (
	"cmp"
	"slices"

	"github.com/leastconn/grpc-leastconn/state"
)

// Serve tells an endpoint set where those that wait may find room.
func (m *model) Serve(id int, readySets []int) {
	defer m.settle()
	r := m.sets[id]
	if len(r.queueSets) == 0 && len(readySets) > 0 {
		for _, t := range r.in(lapsed) {
			if t.paused {
				t.phase, t.paused, t.doubtful, t.fresh, t.due = queued, false, true, true, 0
			}
		}
	}
	r.queueSets, r.told = readySets, true
	m.takeBack(r, func(t *waiter) bool { return !slices.Contains(readySets, t.readySet) })
	m.grant(r)
}

// othersReady reports whether a ready set has a member that was not tried.
func (r *endpointSet) othersReady(readySets []int, tried []string) bool {
	return len(r.those(func(mb *member) bool {
		return mb.eligible() && slices.Contains(readySets, mb.readySet) && !slices.Contains(tried, mb.endpoint.addr)
	})) > 0
}

// next returns the first that waits and that there is room for, with it.
func (r *endpointSet) next() (*waiter, choice) {
	if len(r.queueSets) == 0 {
		return nil, choice{}
	}
	waiting := r.waiting()
	for _, t := range waiting {
		if t.tried != nil && !r.othersReady(r.queueSets, t.except()) {
			t.startOver()
		}
	}
	for _, t := range waiting {
		if c, _ := r.bestIn(r.queueSets, true, t.except()); len(c.best) > 0 {
			return t, c
		}
	}
	return nil, choice{}
}

// give gives room to one that waits. Where several members are equal, it is taken up
// at once, so that it is known which one it was.
func (m *model) give(t *waiter, c choice) {
	r := t.set
	r.woken = true
	t.phase, t.fresh, t.due = granted, true, 0
	among, bind := sorted(c.best), func(*lease) {}
	addr, unknown := among[0], len(among) > 1
	switch a := m.asking; {
	case unknown && a != nil && a.set == r && a.rpc == t.rpc:
		addr, unknown = a.among(state.Chosen, among), false
	case unknown && slices.Contains(m.served, t.rpc):
		m.lost, unknown = true, false // it has taken up another one, and nobody knows which this was
	case unknown:
		var err error
		addr, bind, err = m.takeUp(t, among)
		m.err = cmp.Or(m.err, err)
	}
	t.lease, t.readySet = m.Choose(r.id, c, addr, t.except()...), c.readySet
	t.lease.bind(t.rpc.cost)
	bind(t.lease)
	if unknown {
		m.used(t)
		m.served = append(m.served, t.rpc)
	}
}

// used notes that an RPC has taken up what it was granted.
func (m *model) used(t *waiter) *lease {
	if t.tried != nil {
		t.set.retries++
	}
	t.remove()
	return t.lease
}

func (m *model) grant(r *endpointSet) { m.offerIn([]*endpointSet{r}) }

// offer gives the room that n has to those that wait for it, by arrival.
func (m *model) offer(n *endpoint) {
	var rs []*endpointSet
	for _, mb := range n.members {
		if mb.eligible() {
			rs = append(rs, mb.set)
		}
	}
	m.offerIn(rs)
}

func (m *model) offerIn(rs []*endpointSet) {
	for {
		var first *waiter
		var room choice
		for _, r := range rs {
			if t, c := r.next(); t != nil && (first == nil || t.arrival < first.arrival) {
				first, room = t, c
			}
		}
		if first == nil {
			return
		}
		m.give(first, room)
	}
}

// revoke takes back what was granted on mb where it is not to be had any more.
func (m *model) revoke(mb *member) {
	m.takeBack(mb.set, func(t *waiter) bool {
		return t.lease.on == mb.endpoint && !(mb.eligible() && mb.readySet == t.readySet)
	})
	m.grant(mb.set)
}

// takeBack takes back some of what was granted. Those RPCs wait again, at their places.
func (m *model) takeBack(r *endpointSet, some func(*waiter) bool) {
	var leases []*lease
	for _, t := range r.granted() {
		if some(t) {
			leases = append(leases, t.giveUp())
			t.phase, t.due = queued, 0
			if t.tried != nil {
				t.due = t.patience
			}
		}
	}
	for _, le := range leases {
		m.endLease(le)
	}
}

// settle ends the other waits of the RPCs that have taken up what they were granted. It
// is the last of what each step does.
func (m *model) settle() {
	for len(m.served) > 0 {
		q := m.served[0]
		m.stopWaiting(q)
		m.served = m.served[1:]
	}
}

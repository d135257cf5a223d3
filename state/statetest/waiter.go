package statetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// waiter is an RPC that waits, or was granted room on an endpoint.
type waiter struct {
	set     *endpointSet
	arrival int
	on      *endpoint // nil while it waits
	start   time.Duration
}

// acquisition is what a call of EndpointSet.AcquireOrQueue may come to.
type acquisition struct {
	outcome state.Outcome
	choice  // among whom, when chosen
	retry   bool
	granted bool
}

// expect returns what a call may come to. t is the RPC's waiter, if it has one.
func (m *model) expect(r *endpointSet, t *waiter, waits bool, readySets []int, tried []string) acquisition {
	switch {
	case t != nil && t.on == nil:
		return acquisition{outcome: state.Queued}
	case t != nil:
		return acquisition{outcome: state.Chosen, choice: choice{best: []*member{r.members[t.on.addr]}}, granted: true}
	}
	if len(tried) > 0 {
		c, _ := r.bestIn(readySets, tried)
		if len(c.best) > 0 {
			return acquisition{outcome: state.Chosen, choice: c, retry: true}
		}
		m.Choose(r.id, c, "", tried...)
	}
	c, full := r.bestIn(readySets, nil)
	if full {
		c, _ = r.bestIn(r.queueSets, nil)
	}
	switch {
	case len(c.best) > 0:
		return acquisition{outcome: state.Chosen, choice: c}
	case !full:
		return acquisition{outcome: state.Empty}
	case !waits || len(r.waiting) >= r.guards.MaxQueued:
		return acquisition{outcome: state.Refused}
	}
	return acquisition{outcome: state.Queued}
}

// enqueue lets an RPC wait.
func (m *model) enqueue(r *endpointSet, readySets []int) *waiter {
	if r.queueSets == nil {
		r.queueSets = readySets
	}
	m.arrivals++
	r.queued++
	t := &waiter{set: r, arrival: m.arrivals}
	r.waiting = append(r.waiting, t)
	return t
}

// Serve tells an endpoint set where those that wait may find room.
func (m *model) Serve(id int, readySets []int) {
	r := m.sets[id]
	r.queueSets = readySets
	m.grant(r)
}

// leave ends a waiter; what it was granted goes on.
func (m *model) leave(t *waiter) {
	t.set.waiting = without(t.set.waiting, t)
	t.set.granted = without(t.set.granted, t)
	if t.on != nil {
		m.endLease(t.on)
	}
}

// used notes that an RPC has taken up what it was granted.
func (m *model) used(t *waiter) { t.set.granted = without(t.set.granted, t) }

func without(ts []*waiter, t *waiter) []*waiter {
	return slices.DeleteFunc(ts, func(o *waiter) bool { return o == t })
}

func (m *model) grant(r *endpointSet) {
	for m.grantOne(r) {
	}
}

// grantOne gives room to the first that waits. Where several members are equal, it
// is taken up at once, so that it is known which one it was.
func (m *model) grantOne(r *endpointSet) bool {
	if len(r.waiting) == 0 {
		return false
	}
	c, _ := r.bestIn(r.queueSets, nil)
	if len(c.best) == 0 {
		return false
	}
	t := r.waiting[0]
	r.waiting = r.waiting[1:]
	r.granted = append(r.granted, t)
	r.woken = true
	addr := c.best[0].endpoint.addr
	if among := sorted(c.best); len(among) > 1 {
		var err error
		if addr, err = m.takeUp(t, among); err != nil {
			m.err = cmp.Or(m.err, err)
			addr = among[0]
		}
		m.used(t)
	}
	t.on, t.start = m.endpoints[addr], m.now
	m.Choose(r.id, c, addr)
	return true
}

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
	for again := true; again; {
		rs = slices.DeleteFunc(rs, func(r *endpointSet) bool { return len(r.waiting) == 0 })
		slices.SortFunc(rs, func(a, b *endpointSet) int { return a.waiting[0].arrival - b.waiting[0].arrival })
		again = slices.ContainsFunc(rs, m.grantOne)
	}
}

// revoke takes back what was granted on mb. Those RPCs wait again, at their places.
func (m *model) revoke(mb *member) {
	r := mb.set
	back := 0
	for _, t := range slices.Clone(r.granted) {
		if t.on == mb.endpoint {
			r.granted = without(r.granted, t)
			t.on = nil
			r.waiting = append(r.waiting, t)
			back++
		}
	}
	slices.SortFunc(r.waiting, func(a, b *waiter) int { return a.arrival - b.arrival })
	for range back {
		m.endLease(mb.endpoint)
	}
	m.grant(r)
}

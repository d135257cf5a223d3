package state

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// check asserts that the endpoint set, its members and its ready sets agree.
func (r *EndpointSet) check() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("endpoint set %q: "+format, append([]any{r.name}, args...)...))
	}
	for m := range r.drained {
		if _, ok := r.members[m]; !ok {
			fail("member %q is drained and gone", m.addrs)
		}
	}
	placed, waiting := 0, 0
	for m := range r.members {
		if m.endpoint == nil || !slices.Contains(m.endpoint.members, m) {
			fail("member %q is not its endpoint's", m.addrs)
			continue
		}
		if m.leaving || m.newcomer {
			fail("member %q is still leaving or new", m.addrs)
		}
		errs = append(errs, m.check())
		h := m.anyHandle()
		if h == order.None {
			continue
		}
		if m.readySet == nil || !slices.Contains(r.readySets, m.readySet) {
			fail("member %q is in the order of no ready set", m.addrs)
			continue
		}
		o, at := m.place()
		if c := m.readySet.order.Value(h); c.member() != m || c.endpoint != m.endpoint {
			fail("member %q is not at handle %d", m.addrs, h)
			continue
		}
		if o == nil {
			continue
		}
		placed++
		if c := o.Value(at); c.member() != m || c.endpoint != m.endpoint {
			fail("member %q is not at handle %d", m.addrs, at)
		}
		if !slices.Contains(m.endpoint.places, place{o, at}) {
			fail("member %q has no place at handle %d", m.addrs, at)
		}
	}
	for _, v := range r.readySets {
		placed -= v.order.Len() + v.overfull.Len() + v.noRoom.Len()
		errs = append(errs, v.checkYoung(), v.order.Check(choice.standing), v.overfull.Check(choice.fallbackStanding), v.noRoom.Check(choice.fallbackStanding), v.check())
	}
	if placed != 0 {
		fail("%d members more than the orders have", placed)
	}
	for s := range r.ledger.sets {
		waiting += s.queue.waiting()
	}
	if waiting != r.ledger.waiting {
		fail("%d RPCs queued, %d waiting", waiting, r.ledger.waiting)
	}
	return errors.Join(errs...)
}

// standing returns by what c is to stand in its order.
func (c choice) standing() order.Standing {
	return order.Standing{Weight: c.member().effectiveWeight(), Load: c.endpoint.load.sum(), Suspended: c.member().full}
}

// fallbackStanding is standing in another order. The weight is that of the class in the
// order, near the member's own.
func (c choice) fallbackStanding() order.Standing {
	m := c.member()
	return order.Standing{Weight: m.readySet.order.ClassWeight(m.suspended), Load: c.endpoint.load.sum()}
}

// check asserts that m is in the order exactly while it is eligible, suspended there
// exactly while it is full, in the other exactly while that is so because of penalties
// alone, and is looked at again in time.
func (m *Member) check() error {
	n, v := m.endpoint, m.eligible()
	c, failed := m.connection, int64(0)
	for _, p := range n.penalties {
		if p.connection == c {
			failed += p.failed
		}
	}
	if failed != c.failed {
		return fmt.Errorf("member %q: %d failures take room on its connection, %d do", m.addrs, c.failed, failed)
	}
	noRoom, atCap := c.full(), n.load.inFlight >= m.limit
	full := v != nil && (c.inFlight+c.failed >= c.fullAt || n.load.rpcs() >= m.limit)
	busy := v != nil && (noRoom || atCap)
	var fallback *choiceOrder
	switch {
	case full && !busy:
		fallback = &v.overfull
	case full && !atCap:
		fallback = &v.noRoom
	}
	if m.eligibleIn != v || m.full != full || m.busy != busy || (m.handle != order.None) != (v != nil && !full) ||
		(m.suspended != order.None) != full || m.fallbackIn != fallback || (m.fallback != order.None) != (fallback != nil) || !m.again() || v == nil && m.ramping() {
		return fmt.Errorf("member %q with weight %d, ramping: %t, %d of %d in flight and a penalty of %d: eligible: %t, full: %t, busy: %t, at %d, suspended at %d, fallback at %d, again at %+v",
			m.addrs, m.weight, m.ramping(), n.load.inFlight, m.limit, n.load.failed,
			m.eligibleIn == v, m.full, m.busy, m.handle, m.suspended, m.fallback, n.again)
	}
	return nil
}

// again reports whether m is looked at again before it is full or busy, or is not any
// more.
func (m *Member) again() bool {
	in := func(reached bool, t thresholds) bool {
		return reached && int64(t.below) >= m.limit || !reached && int64(t.from) <= m.limit
	}
	a := &m.endpoint.again
	load := m.endpoint.load
	return m.eligibleIn == nil || in(load.rpcs() >= m.limit, a.rpcs) && in(load.inFlight >= m.limit, a.inFlight)
}

func (v *ReadySet) check() error {
	eligible, full, busy := 0, 0, 0
	for m := range v.set.members {
		if m.eligibleIn == v {
			eligible++
			if m.full {
				full++
			}
			if m.busy {
				busy++
			}
		}
	}
	if eligible != v.eligible || full != v.full || busy != v.busy {
		return fmt.Errorf("ready set with %d eligible, %d full and %d busy has %d, %d and %d", v.eligible, v.full, v.busy, eligible, full, busy)
	}
	return nil
}

// checkRamps asserts that the endpoint set knows which of its members start slowly, and
// when their factors are to rise.
func (r *EndpointSet) checkRamps() error {
	ramping := 0
	for m := range r.members {
		if m.ramping() {
			ramping++
		}
		if m.ramping() != (m.slowStart.ramp != noRamp) {
			return fmt.Errorf("member %q ramps: %t, at %d", m.addrs, m.ramping(), m.slowStart.ramp)
		}
	}
	for i, p := range r.ramps {
		if s := p.member.slowStart; s.ramp != i || s.nextStep != p.nextStep {
			return fmt.Errorf("member %q has its next step at %v, its ramp %d at %v", p.member.addrs, s.nextStep, i, p.nextStep)
		}
	}
	if ramping != len(r.ramps) {
		return fmt.Errorf("endpoint set %q: %d members ramp, %d are known to", r.name, ramping, len(r.ramps))
	}
	return nil
}

// checkQueue asserts that waiters are queued in order of arrival, hold a lease or have
// lapsed, and that none is queued while there is room for it.
func (r *EndpointSet) checkQueue() error {
	q := &r.queue
	if r.closed && len(q.waiters) > 0 {
		return fmt.Errorf("endpoint set %q is closed, and %d RPCs wait", r.name, len(q.waiters))
	}
	for _, l := range []*waiterList{&q.queued, &q.retries} {
		last := uint64(0)
		for e := l.list.Front(); e != nil; e = e.Next() {
			w := waiterAt(e)
			if w.arrival <= last || w.element != e || q.waiters[w.rpc] != w || !w.is(phaseQueued) || q.listOf(w) != l || (w.timeout == notTimed) && w.tried != nil || w.timeout != notTimed && w.tried == nil && !w.doubtful.Load() {
				return fmt.Errorf("endpoint set %q: waiter %d is out of order", r.name, w.arrival)
			}
			last = w.arrival
			if roomIn(q.queueSets, w.tried) {
				return fmt.Errorf("endpoint set %q: RPCs wait while there is room", r.name)
			}
			if w.tried != nil && len(q.queueSets) > 0 && !othersReady(q.queueSets, w.tried) {
				return fmt.Errorf("endpoint set %q: waiter %d waits for an endpoint that is not ready", r.name, w.arrival)
			}
		}
	}
	lapses := 0
	for rpc, w := range q.waiters {
		if w.is(phaseLapsed) {
			lapses++
		}
		if _, ok := q.granted[w]; ok != w.is(phaseGranted) || ok != (w.lease.entry != nil) || w.rpc != rpc || !slices.Contains(waits.of(rpc), w) {
			return fmt.Errorf("endpoint set %q: waiter %d is in phase %d, granted: %t", r.name, w.arrival, w.phase.Load(), ok)
		}
	}
	for w := range q.granted {
		if s := w.lease.entry; s.gen != w.lease.gen || s.endpoint != w.member.endpoint || w.readySet == nil || w.readySet != w.member.eligible() || !slices.Contains(q.queueSets, w.readySet) {
			return fmt.Errorf("endpoint set %q: waiter %d was granted nothing", r.name, w.arrival)
		}
	}
	if sum := q.waiting() + len(q.granted) + lapses; sum != len(q.waiters) {
		return fmt.Errorf("endpoint set %q: %d waiters, %d queued, granted or lapsed", r.name, len(q.waiters), sum)
	}
	return nil
}

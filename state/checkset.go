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
		if m.order == nil || m.handle == order.None {
			continue
		}
		placed++
		if m.readySet == nil || !slices.Contains(r.readySets, m.readySet) {
			fail("member %q is in the order of no ready set", m.addrs)
			continue
		}
		p := place{m.order, m.handle}
		if c := p.order.Value(m.handle); c.member != m || c.endpoint != m.endpoint || !slices.Contains(m.endpoint.places, p) {
			fail("member %q is not at handle %d", m.addrs, m.handle)
		}
	}
	for _, v := range r.readySets {
		placed -= v.order.Len() + v.overfull.Len()
		errs = append(errs, v.order.Check(choice.standing), v.overfull.Check(choice.standing), v.check())
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
func (c choice) standing() (weight float64, load int64) {
	return c.member.effectiveWeight(), c.endpoint.load.sum()
}

// check asserts that m is in the order that it belongs in, has a minimal share exactly
// while it is empty, has room and ramps, and is looked at again in time.
func (m *Member) check() error {
	n, v := m.endpoint, m.eligible()
	full := v != nil && n.load.sum() >= m.limit
	busy := v != nil && n.load.inFlight >= m.limit
	minShare := v != nil && !full && m.ramping() && n.load.inFlight == 0
	if m.eligibleIn != v || m.full != full || m.busy != busy || m.order != m.belongsIn() || (m.order == nil) != (m.handle == order.None) ||
		(m.minShare.index != none) != minShare || !m.again() || v == nil && m.ramping() {
		return fmt.Errorf("member %q with weight %d, ramping: %t, %d of %d in flight and a penalty of %d: eligible: %t, full: %t, busy: %t, at %d, at %d in the heap, again at %+v",
			m.addrs, m.weight, m.ramping(), n.load.inFlight, m.limit, n.load.penalty,
			m.eligibleIn == v, m.full, m.busy, m.handle, m.minShare.index, n.again)
	}
	return nil
}

// again reports whether m is looked at again before it is full, busy or empty, or is
// not any more.
func (m *Member) again() bool {
	if m.eligibleIn == nil {
		return true
	}
	t, a := m.endpoint.load, m.endpoint.again
	in := func(is bool, limit int64, at struct{ from, below int64 }) bool {
		if is {
			return at.below >= limit
		}
		return at.from <= limit
	}
	return in(m.full, m.limit, a.sum) && in(m.busy, m.limit, a.inFlight) &&
		(m.full || !m.ramping() || in(t.inFlight > 0, 1, a.inFlight))
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
	for i, m := range v.minShare.members {
		s := m.minShare
		if m.eligibleIn != v || s.index != int32(i) || i > 0 && v.minShare.members[(i-1)/2].minShare.due > s.due {
			return fmt.Errorf("member %q is at the wrong index %d of the heap", m.addrs, i)
		}
	}
	return nil
}

// checkQueue asserts that waiters are queued in order of arrival, hold a lease or have
// lapsed, and that none is queued while there is room for it.
func (r *EndpointSet) checkQueue() error {
	q := &r.queue
	for _, l := range []*waiterList{&q.queued, &q.retries} {
		last := uint64(0)
		for e := l.list.Front(); e != nil; e = e.Next() {
			w := waiterAt(e)
			if w.arrival <= last || w.element != e || q.waiters[w.rpc] != w || !w.is(phaseQueued) || q.listOf(w) != l || (w.timeout == notTimed) && w.tried != nil || w.timeout != notTimed && w.tried == nil && !w.doubtful {
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
		if _, ok := q.granted[w]; ok != w.is(phaseGranted) || ok != (w.lease.entry != nil) || w.rpc != rpc || !slices.Contains(waitsOf(rpc), w) {
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

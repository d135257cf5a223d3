package state

import (
	"cmp"
	"slices"
)

// queue is the RPCs of an endpoint set that wait for a member below its cap, in order
// of arrival. Room goes to the first of them that may use it, in the step that makes
// it: its waiter is granted a lease, which the RPC takes up when it is woken. So nobody
// overtakes, no wake-up is lost and a cap holds for those that wait, too.
type queue struct {
	waiters   map[<-chan struct{}]*waiter // by RPC
	queued    waiterList                  // those that may use any room
	retries   waiterList                  // those that wait for an endpoint that they have not tried
	granted   map[*waiter]struct{}
	lost      uint64      // grants that were not taken up, ever
	fresh     []*waiter   // granted or resumed since the last publish; some may be so no more
	queueSets []*ReadySet // where there may be room for them
	told      bool        // of queueSets
}

// waiting returns how many RPCs wait.
func (q *queue) waiting() int { return q.queued.len() + q.retries.len() }

// listOf returns the list that w belongs in.
func (q *queue) listOf(w *waiter) *waiterList {
	if w.tried != nil {
		return &q.retries
	}
	return &q.queued
}

// SetQueueSets tells the endpoint set in which of its ready sets, the first before
// the second, the RPCs that wait may find room; without any, they find none. What was
// granted in others is taken back.
func (r *EndpointSet) SetQueueSets(sets ...*ReadySet) {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	resumed := len(r.queue.queueSets) == 0 && len(sets) > 0
	r.queue.queueSets, r.queue.told = sets, true
	if resumed {
		r.resume()
	}
	r.takeBack(func(w *waiter) bool { return !slices.Contains(sets, w.readySet) })
	r.grant()
}

// enqueue puts w into the queue at its place.
func (r *EndpointSet) enqueue(w *waiter) {
	w.phase.Store(phaseQueued)
	r.ledger.waiting++
	r.queue.listOf(w).insert(w)
}

// dequeue takes w out of the queue.
func (r *EndpointSet) dequeue(w *waiter) {
	r.queue.listOf(w).remove(w)
	r.ledger.waiting--
}

// startOver lets w, which is queued, use any room.
func (w *waiter) startOver() {
	r := w.set
	r.dequeue(w)
	w.tried, w.startedOver = nil, true
	r.ledger.timeouts.remove(w)
	r.enqueue(w)
}

// next returns the first waiter that there is room for, nil without one. RPCs that are
// over leave, and those that wait for endpoints which are not ready any more start
// over.
func (r *EndpointSet) next() *waiter {
	q := &r.queue
	sets := q.queueSets
	if len(sets) == 0 {
		return nil
	}
	q.retries.all(func(w *waiter) {
		if w.rpcIsOver() {
			w.cancel()
		} else if !othersReady(sets, w.tried) {
			w.startOver()
		}
	})
	first := q.queued.first()
	for first != nil && first.rpcIsOver() {
		first.cancel()
		first = q.queued.first()
	}
	if first != nil && !roomIn(sets, nil) {
		first = nil
	}
	for w := q.retries.first(); w != nil; w = waiterAt(w.element.Next()) {
		if first != nil && first.arrival < w.arrival {
			break
		}
		if roomIn(sets, w.tried) {
			return w
		}
	}
	return first
}

// grantNext gives w, for whom there is room, a lease.
func (w *waiter) grantNext() {
	r := w.set
	lease, m, _ := chooseIn(r.queue.queueSets, w.tried, true, w.cost)
	r.dequeue(w)
	r.ledger.timeouts.remove(w)
	w.phase.Store(phaseGranted)
	w.lease, w.member, w.readySet = lease, m, m.readySet
	r.queue.granted[w] = struct{}{}
	m.connection.picks-- // until it is taken up
	m.endpoint.granted++
	if r.guards.Wake == nil {
		return
	}
	r.queue.fresh = append(r.queue.fresh, w)
	select {
	case r.guards.Wake <- struct{}{}:
	default:
	}
}

// grant gives room to those of the endpoint set's RPCs that wait, in their order, as
// long as there is some.
func (r *EndpointSet) grant() { grantIn(r) }

// grantOn gives the room that there is since n has less load to the RPCs that wait
// for it, of all endpoint sets: room on n, or, when n is the last that was busy, on
// others.
func (l *Ledger) grantOn(n *endpoint) {
	if l.waiting == 0 {
		return
	}
	var rs []*EndpointSet
	for _, m := range n.members {
		if m.eligibleIn != nil {
			rs = append(rs, m.set)
		}
	}
	grantIn(rs...)
}

// grantIn gives the room of endpoint sets to the RPCs that wait in them, in order of
// arrival.
func grantIn(rs ...*EndpointSet) {
	for {
		var first *waiter
		for _, r := range rs {
			if r.queue.waiting() == 0 {
				continue
			}
			if w := r.next(); w != nil && (first == nil || w.arrival < first.arrival) {
				first = w
			}
		}
		if first == nil {
			return
		}
		first.grantNext()
	}
}

// resume lets the RPCs that were paused wait again, at their places, as they find room
// again. Which of them still wait is seen when they have been woken.
func (r *EndpointSet) resume() {
	var back []*waiter
	for _, w := range r.queue.waiters {
		if w.is(phaseLapsed) && w.paused {
			back = append(back, w)
		}
	}
	slices.SortFunc(back, func(a, b *waiter) int { return cmp.Compare(a.arrival, b.arrival) })
	for _, w := range back {
		w.paused = false
		w.doubtful.Store(true) // before the phase, which others look at first
		w.phase.Store(phaseQueued)
		r.ledger.timeouts.remove(w)
		if r.guards.Wake != nil {
			r.queue.fresh = append(r.queue.fresh, w)
		}
	}
	r.ledger.waiting += len(back)
	r.queue.queued.merge(back)
}

// revoke takes back what was granted on m in a ready set that it takes no RPCs in any
// more.
func (r *EndpointSet) revoke(m *Member) {
	r.takeBack(func(w *waiter) bool { return w.member == m && w.readySet != m.eligible() })
}

// takeBack takes back some of what was granted. The RPCs wait again, at their places.
func (r *EndpointSet) takeBack(some func(*waiter) bool) {
	q := &r.queue
	var back []*waiter
	for w := range q.granted {
		if some(w) {
			back = append(back, w)
		}
	}
	if len(back) == 0 {
		return
	}
	slices.SortFunc(back, func(a, b *waiter) int { return cmp.Compare(a.arrival, b.arrival) })
	leases := make([]Lease, len(back))
	var others, retries []*waiter
	for i, w := range back {
		leases[i] = w.leave()
		w.phase.Store(phaseQueued)
		r.ledger.timeouts.remove(w)
		if w.tried == nil {
			others = append(others, w)
			continue
		}
		retries = append(retries, w)
		r.ledger.setTimeout(w, w.patience)
	}
	r.ledger.waiting += len(back)
	q.queued.merge(others)
	q.retries.merge(retries)
	for _, lease := range leases {
		lease.entry.end(endReleased)
	}
}

// cancelAll ends all waiters of an endpoint set that closes. It returns what ends the
// watches over them.
func (r *EndpointSet) cancelAll() []func() bool {
	var stops []func() bool
	var leases []Lease
	for _, w := range r.queue.waiters {
		if lease := w.leave(); lease.entry != nil {
			leases = append(leases, lease)
		}
		w.remove()
		if w.stop != nil {
			stops = append(stops, w.stop)
		}
	}
	r.queue = queue{lost: r.queue.lost}
	for _, lease := range leases {
		lease.entry.end(endReleased)
	}
	return stops
}

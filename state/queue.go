package state

import (
	"cmp"
	"container/list"
	"slices"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// queue is the RPCs of an endpoint set that wait for a member below its cap, in order
// of arrival. Room goes to the first of them in the step that makes it: its waiter
// is granted a lease, which the RPC takes up when it is woken. So nobody overtakes,
// no wake-up is lost and a cap holds for those that wait, too.
type queue struct {
	waiters   map[<-chan struct{}]*waiter // queued or granted, by RPC
	queued    list.List                   // waiters, by arrival
	queueSets []*ReadySet                 // where there may be room for them
}

// SetQueueSets tells the endpoint set in which of its ready sets, the first before
// the second, the RPCs that wait may find room.
func (r *EndpointSet) SetQueueSets(sets ...*ReadySet) {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	r.queue.queueSets = sets
	r.grant()
}

// enqueue puts w into the queue at its place: the end, or, once it was granted
// something, near the front.
func (r *EndpointSet) enqueue(w *waiter) {
	queued := &r.queue.queued
	r.ledger.waiting++
	if last := queued.Back(); last == nil || last.Value.(*waiter).arrival < w.arrival {
		w.element = queued.PushBack(w)
		return
	}
	after := queued.Front()
	for after.Value.(*waiter).arrival < w.arrival {
		after = after.Next()
	}
	w.element = queued.InsertBefore(w, after)
}

// dequeue takes w out of the queue.
func (r *EndpointSet) dequeue(w *waiter) {
	r.queue.queued.Remove(w.element)
	w.element = nil
	r.ledger.waiting--
}

// grant gives room to those of the endpoint set's RPCs that wait, in their order, as
// long as there is some.
func (r *EndpointSet) grant() {
	for r.grantOne() {
	}
}

func (r *EndpointSet) grantOne() bool {
	first := r.queue.queued.Front()
	if first == nil {
		return false
	}
	lease, m, _ := chooseIn(r.queue.queueSets, nil, true)
	if m == nil {
		return false
	}
	w := first.Value.(*waiter)
	r.dequeue(w)
	w.lease, w.member, w.readySet = lease, m, m.readySet
	select {
	case r.guards.Wake <- struct{}{}:
	default:
	}
	return true
}

// grantOn gives the room that n has to the RPCs that wait for it, of all endpoint
// sets, in order of arrival.
func (l *Ledger) grantOn(n *endpoint) {
	for again := true; again; {
		var rs []*EndpointSet
		for _, m := range n.members {
			if m.handle != order.None && m.set.queue.queued.Len() > 0 {
				rs = append(rs, m.set)
			}
		}
		slices.SortFunc(rs, func(a, b *EndpointSet) int { return cmp.Compare(a.firstArrival(), b.firstArrival()) })
		again = slices.ContainsFunc(rs, (*EndpointSet).grantOne)
	}
}

func (r *EndpointSet) firstArrival() uint64 { return r.queue.queued.Front().Value.(*waiter).arrival }

// revoke takes back what was granted on m in a ready set that it takes no RPCs in any
// more. The RPCs wait again, at their places.
func (r *EndpointSet) revoke(m *Member) {
	if len(r.queue.waiters) == r.queue.queued.Len() {
		return // nothing is granted
	}
	var back []Lease
	for _, w := range r.queue.waiters {
		if !w.queued() && w.member == m && w.readySet != m.eligible() {
			back = append(back, w.lease)
			w.lease, w.member, w.readySet = Lease{}, nil, nil
			r.enqueue(w)
		}
	}
	for _, lease := range back {
		lease.entry.end(false)
	}
}

// cancelAll ends all waiters of an endpoint set that closes. It returns what ends the
// watches over them.
func (r *EndpointSet) cancelAll() []func() bool {
	waiters := r.queue.waiters
	r.ledger.waiting -= r.queue.queued.Len()
	r.queue = queue{}
	var stops []func() bool
	for _, w := range waiters {
		if w.stop != nil {
			stops = append(stops, w.stop)
		}
		if !w.queued() {
			w.lease.entry.end(false)
		}
	}
	return stops
}

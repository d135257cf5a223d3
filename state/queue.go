package state

import (
	"cmp"
	"container/list"
	"slices"
)

// queue is the RPCs of an endpoint set that wait for a member below its cap, in order
// of arrival. Room goes to the first of them in the step that makes it: its waiter
// is granted a lease, which the RPC takes up when it is woken. So nobody overtakes,
// no wake-up is lost and a cap holds for those that wait, too.
type queue struct {
	waiters   map[<-chan struct{}]*waiter // queued or granted, by RPC
	line      list.List                   // of the waiters that are queued
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

// enqueue puts w into the line at its place: the end, or, once it was granted
// something, near the front.
func (r *EndpointSet) enqueue(w *waiter) {
	line := &r.queue.line
	r.ledger.waiting++
	if last := line.Back(); last == nil || last.Value.(*waiter).arrival < w.arrival {
		w.element = line.PushBack(w)
		return
	}
	after := line.Front()
	for after.Value.(*waiter).arrival < w.arrival {
		after = after.Next()
	}
	w.element = line.InsertBefore(w, after)
}

// dequeue takes w out of the line.
func (r *EndpointSet) dequeue(w *waiter) {
	r.queue.line.Remove(w.element)
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
	first := r.queue.line.Front()
	if first == nil {
		return false
	}
	lease, m, _ := chooseIn(r.queue.queueSets, nil)
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

// grantOn gives the room that there is since n has less load to the RPCs that wait
// for it, of all endpoint sets, in order of arrival: room on n, or, when n is the last
// that was busy, on others.
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
	grantIn(rs)
}

// grantIn gives the room of endpoint sets to the RPCs that wait in them, in order of
// arrival.
func grantIn(rs []*EndpointSet) {
	for again := true; again; {
		rs = slices.DeleteFunc(rs, func(r *EndpointSet) bool { return r.queue.line.Len() == 0 })
		slices.SortFunc(rs, func(a, b *EndpointSet) int { return cmp.Compare(a.firstArrival(), b.firstArrival()) })
		again = slices.ContainsFunc(rs, (*EndpointSet).grantOne)
	}
}

func (r *EndpointSet) firstArrival() uint64 { return r.queue.line.Front().Value.(*waiter).arrival }

// revoke takes back what was granted on m in a ready set that it takes no RPCs in any
// more. The RPCs wait again, at their places.
func (r *EndpointSet) revoke(m *Member) {
	if len(r.queue.waiters) == r.queue.line.Len() {
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
	r.ledger.waiting -= r.queue.line.Len()
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

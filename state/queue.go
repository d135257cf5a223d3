package state

import (
	"cmp"
	"container/list"
	"context"
	"slices"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// queue is the RPCs of an endpoint set that wait for a member below its cap, in order
// of arrival. Room goes to the first of them in the step that makes it: a ticket
// is granted a lease, which its RPC takes up when it is woken. So nobody
// overtakes, no wake-up is lost and a cap holds for those that wait, too. The
// ledger's mutex guards it.
type queue struct {
	waiters   map[<-chan struct{}]*waiter // waiting or granted, by RPC
	line      list.List                   // of the tickets that wait
	queueSets []*ReadySet                 // where there may be room for them
}

// ticket is an RPC's place in the queue.
type waiter struct {
	roster  *EndpointSet
	rpc     <-chan struct{}
	arrival uint64        // in the ledger
	at      *list.Element // in the line; nil once granted
	lease   Lease         // once granted, with its member
	member  *Member
	stop    func() bool // ends the watch over the RPC's end
}

// Serve tells the endpoint set in which of its ready sets, the first before the second, the
// RPCs that wait may find room.
func (r *EndpointSet) SetQueueSets(views ...*ReadySet) {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	r.queue.queueSets = views
	r.grant()
}

// enqueue gives the RPC a ticket. Caller holds mu.
func (r *EndpointSet) enqueue(rpc <-chan struct{}) *waiter {
	l := r.ledger
	l.arrivals++
	t := &waiter{roster: r, rpc: rpc, arrival: l.arrivals}
	if r.queue.waiters == nil {
		r.queue.waiters = map[<-chan struct{}]*waiter{}
	}
	r.queue.waiters[rpc] = t
	r.stand(t)
	r.account.Queued++
	return t
}

// stand puts t into the line at its place: the end, or, once it was granted
// something, near the front.
func (r *EndpointSet) stand(t *waiter) {
	line := &r.queue.line
	r.ledger.waiting++
	if last := line.Back(); last == nil || last.Value.(*waiter).arrival < t.arrival {
		t.at = line.PushBack(t)
		return
	}
	after := line.Front()
	for after.Value.(*waiter).arrival < t.arrival {
		after = after.Next()
	}
	t.at = line.InsertBefore(t, after)
}

// step takes t out of the line.
func (r *EndpointSet) dequeue(t *waiter) {
	r.queue.line.Remove(t.at)
	t.at = nil
	r.ledger.waiting--
}

// watch sees to it that t goes when its RPC ends. Caller does not hold mu: a
// context may be anybody's.
func (t *waiter) watch(ctx context.Context) {
	mu := t.roster.ledger.mu
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		t.leave()
	})
	mu.Lock()
	t.stop = stop
	gone := t.roster.queue.waiters[t.rpc] != t
	mu.Unlock()
	if gone {
		stop()
	}
}

// leave ends t, wherever it stands; what it was granted goes to the next.
// Caller holds mu.
func (t *waiter) leave() {
	r := t.roster
	if r.queue.waiters[t.rpc] != t {
		return
	}
	delete(r.queue.waiters, t.rpc)
	if t.at != nil {
		r.dequeue(t)
		return
	}
	t.lease.entry.settle(false)
}

// grant gives room to those of the endpoint set's RPCs that wait, in their order, as
// long as there is some. Caller holds mu.
func (r *EndpointSet) grant() {
	for r.grantOne() {
	}
}

func (r *EndpointSet) grantOne() bool {
	first := r.queue.line.Front()
	if first == nil {
		return false
	}
	lease, m, _ := acquireIn(r.queue.queueSets)
	if m == nil {
		return false
	}
	t := first.Value.(*waiter)
	r.dequeue(t)
	t.lease, t.member = lease, m
	select {
	case r.guards.Wake <- struct{}{}:
	default:
	}
	return true
}

// offer gives the room that n has to the RPCs that wait for it, of all endpoint sets,
// in order of arrival. Caller holds mu.
func (l *Ledger) offer(n *endpoint) {
	for again := true; again; {
		var rs []*EndpointSet
		for _, m := range n.members {
			if m.handle != order.None && m.set.queue.line.Len() > 0 {
				rs = append(rs, m.set)
			}
		}
		slices.SortFunc(rs, func(a, b *EndpointSet) int { return cmp.Compare(a.firstArrival(), b.firstArrival()) })
		again = slices.ContainsFunc(rs, (*EndpointSet).grantOne)
	}
}

func (r *EndpointSet) firstArrival() uint64 { return r.queue.line.Front().Value.(*waiter).arrival }

// revoke takes back what was granted on m, which may not be chosen any more; its
// RPCs wait again, at their places, unless there is room elsewhere. Caller holds
// mu.
func (r *EndpointSet) revoke(m *Member) {
	if len(r.queue.waiters) == r.queue.line.Len() {
		return // nothing is granted
	}
	var back []Lease
	for _, t := range r.queue.waiters {
		if t.at == nil && t.member == m {
			back = append(back, t.lease)
			t.lease, t.member = Lease{}, nil
			r.stand(t)
		}
	}
	for _, lease := range back {
		lease.entry.settle(false)
	}
	r.grant()
}

// disperse ends all tickets of an endpoint set that closes. It returns what ends the
// watches over them. Caller holds mu.
func (r *EndpointSet) cancelAll() []func() bool {
	tickets := r.queue.waiters
	r.ledger.waiting -= r.queue.line.Len()
	r.queue = queue{}
	var stops []func() bool
	for _, t := range tickets {
		if t.stop != nil {
			stops = append(stops, t.stop)
		}
		if t.at == nil {
			t.lease.entry.settle(false)
		}
	}
	return stops
}

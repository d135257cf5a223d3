package state

import (
	"container/list"
	"context"
)

// waiter is an RPC that waits in the queue, or was granted room and has not taken it
// up.
type waiter struct {
	set      *EndpointSet
	rpc      <-chan struct{}
	arrival  uint64        // in the ledger
	element  *list.Element // in the queue; nil once granted
	lease    Lease         // once granted, with the member and the ready set
	member   *Member
	readySet *ReadySet
	stop     func() bool // ends the watch over the RPC's end
}

func (w *waiter) queued() bool { return w.element != nil }

// newWaiter lets the RPC wait.
func (r *EndpointSet) newWaiter(rpc <-chan struct{}) *waiter {
	l := r.ledger
	l.arrivals++
	w := &waiter{set: r, rpc: rpc, arrival: l.arrivals}
	if r.queue.waiters == nil {
		r.queue.waiters = map[<-chan struct{}]*waiter{}
	}
	r.queue.waiters[rpc] = w
	r.enqueue(w)
	r.counters.Queued++
	return w
}

// watch sees to it that w is cancelled when its RPC ends. It takes the ledger's mutex
// and calls ctx without it: a context may be anybody's.
func (w *waiter) watch(ctx context.Context) {
	mu := w.set.ledger.mu
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		w.cancel()
	})
	mu.Lock()
	w.stop = stop
	gone := w.set.queue.waiters[w.rpc] != w
	mu.Unlock()
	if gone {
		stop()
	}
}

// cancel ends w, if it has not ended. What it was granted goes to the next.
func (w *waiter) cancel() {
	r := w.set
	if r.queue.waiters[w.rpc] != w {
		return
	}
	delete(r.queue.waiters, w.rpc)
	if w.queued() {
		r.dequeue(w)
		return
	}
	w.lease.entry.end(false)
}

package state

import (
	"container/list"
	"context"
	"sync/atomic"
	"time"
)

// waiter is an RPC's wait in the queue of an endpoint set. It begins when the RPC
// finds no room, and ends when the RPC is served, here or elsewhere, when its attempt
// or itself ends, or when the endpoint set closes.
type waiter struct {
	set     *EndpointSet
	rpc     <-chan struct{}
	arrival uint64 // in the ledger
	cost    *Cost  // nil where the RPC costs one unit
	phase   phase

	tried       []*endpoint   // it waits for another one than these; nil: for any
	startedOver bool          // it has given that up
	patience    time.Duration // when it does, by the ledger's clock

	element  *list.Element // in a list, while it is queued
	lease    Lease         // while it is granted, with the member and the ready set
	member   *Member
	readySet *ReadySet

	paused   bool        // it has lapsed until there is room again
	doubtful atomic.Bool // it was paused, and has not been seen since; as phase, it may be read without the mutex

	due     time.Duration // when something is to become of it, by the ledger's clock
	timeout int           // its index in the ledger's timeouts; none without one
	since   uint64        // the tick at which that was set

	stop func() bool // ends the watch over the RPC's end
}

// phase is where a waiter is. The ledger's mutex guards it; without it, it may be
// read.
type phase struct{ atomic.Int32 }

const (
	phaseQueued  int32 = iota // it is in the queue
	phaseGranted              // it was given room that its RPC has not taken up
	phaseLapsed               // it is passed over: nobody knows whether its RPC still waits
	phaseOver
)

func (w *waiter) is(phase int32) bool { return w.phase.Load() == phase }

// newWaiter lets the RPC wait for an endpoint that was not tried.
func (r *EndpointSet) newWaiter(rpc <-chan struct{}, tried []*endpoint) *waiter {
	l := r.ledger
	l.arrivals++
	w := &waiter{set: r, rpc: rpc, arrival: l.arrivals, tried: tried, timeout: notTimed}
	if r.queue.waiters == nil {
		r.queue.waiters, r.queue.granted = map[<-chan struct{}]*waiter{}, map[*waiter]struct{}{}
	}
	r.queue.waiters[rpc] = w
	waits.add(rpc, w)
	r.enqueue(w)
	r.counters.Queued++
	return w
}

// watch sees to it that w is cancelled when its RPC ends. It takes the ledger's mutex
// and calls ctx without it: a context may be anybody's.
func (w *waiter) watch(ctx context.Context) {
	mu := w.set.ledger.mu
	stop := context.AfterFunc(ctx, func() { w.cancelUnlocked() })
	mu.Lock()
	w.stop = stop
	gone := w.is(phaseOver)
	mu.Unlock()
	if gone {
		stop()
	}
}

// cancelUnlocked is cancel for those who do not hold the ledger's mutex. It returns
// what ends the watch, which may call others.
func (w *waiter) cancelUnlocked() (stop func() bool) {
	mu := w.set.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	if w.is(phaseOver) {
		return nil
	}
	w.cancel()
	return w.stop
}

// cancel ends w. What it was granted goes to the next.
func (w *waiter) cancel() {
	lease := w.leave()
	w.remove()
	if lease.entry != nil {
		lease.entry.end(endReleased)
	}
}

// remove makes w, which is neither queued nor granted any more, one that was.
func (w *waiter) remove() {
	w.phase.Store(phaseOver)
	w.set.ledger.timeouts.remove(w)
	delete(w.set.queue.waiters, w.rpc)
	waits.remove(w.rpc, w)
}

// leave takes w out of the queue, or what it was granted from it. The lease is the
// caller's to end.
func (w *waiter) leave() (lease Lease) {
	switch r := w.set; w.phase.Load() {
	case phaseQueued:
		r.dequeue(w)
	case phaseGranted:
		delete(r.queue.granted, w)
		r.queue.lost++
		w.member.endpoint.granted--
		lease = w.lease
		w.lease, w.member, w.readySet = Lease{}, nil, nil
	}
	return lease
}

// lapse has w passed over until its RPC is seen again. What it was granted goes to the
// next.
func (w *waiter) lapse() {
	lease := w.leave()
	w.phase.Store(phaseLapsed)
	w.set.ledger.timeouts.remove(w)
	if lease.entry != nil {
		lease.entry.end(endReleased)
	}
}

// pause is lapse for an RPC whose wait may have ended. It waits for any endpoint
// afterwards.
func (w *waiter) pause() {
	w.lapse()
	w.startedOver = w.startedOver || w.tried != nil
	w.tried, w.paused = nil, true
}

// seen notes that w's RPC has asked for room again.
func (w *waiter) seen() {
	if w.doubtful.Load() && w.is(phaseQueued) {
		w.set.ledger.timeouts.remove(w)
	}
	w.doubtful.Store(false)
}

// rejoin lets w, which has lapsed, wait at its place again, as an RPC that has tried
// some endpoints.
func (w *waiter) rejoin(tried []*endpoint) {
	w.set.ledger.timeouts.remove(w)
	w.paused = false
	w.startedOver = w.startedOver || tried == nil && w.tried != nil
	w.tried = tried
	w.set.enqueue(w)
	w.set.grant()
}

// setPatience has w, if it waits for an endpoint that it has not tried, do so for a
// time at most.
func (w *waiter) setPatience(left time.Duration) {
	if w.tried == nil || !w.is(phaseQueued) {
		return
	}
	l := w.set.ledger
	w.patience = l.clock.read() + left
	l.setTimeout(w, w.patience)
}

// rpcIsOver reports whether w's RPC has ended.
func (w *waiter) rpcIsOver() bool {
	select {
	case <-w.rpc:
		return true
	default:
		return false
	}
}

package state

import (
	"context"
	"time"
)

// Outcome says how a call of [EndpointSet.AcquireOrQueue] ended.
type Outcome int

const (
	// Empty: the first ready set has no member to choose and none at its cap.
	Empty Outcome = iota
	// Chosen: the lease is counted.
	Chosen
	// Queued: all members are at their caps, and the RPC waits until the endpoint
	// set wakes it.
	Queued
	// Refused: they are, and as many RPCs wait as may.
	Refused
	// Reserved: the RPC waits for a member that connects; see [ReadySet.SetConnecting].
	Reserved
)

// AcquireOrQueue is Acquire for an RPC that [ReadySet.Acquire] turned away, and for a
// later attempt of one. While members connect, the RPC may wait for one of them, as
// [ReadySet.SetConnecting] says. Else it chooses
//
//   - of members whose endpoints were not tried, in the first ready set that has one
//     with room;
//   - else, as the RPC starts over and its tries are forgotten, in the first ready
//     set that has one with room. Later ready sets are for the room that the first
//     one lacks: where it has nobody at a cap, it alone counts.
//
// When there is none, nor in the ready sets of [EndpointSet.SetQueueSets], the RPC
// waits: it takes its place behind those that came before, and keeps it until ctx
// ends. ctx names the RPC, by its Done channel; without one, an RPC does not wait.
// tried may be nil.
func (r *EndpointSet) AcquireOrQueue(ctx context.Context, tried *Tried, sets ...*ReadySet) (Lease, any, Outcome) {
	a := acquisition{set: r, readySets: sets}
	if tried != nil {
		a.tried = tried.list()
	}
	if ctx != nil {
		a.rpc = ctx.Done()
	}
	if a.rpc != nil {
		a.deadline, _ = ctx.Deadline()
	}
	outcome, stop := a.acquireOrQueue()
	if a.waiter != nil {
		a.waiter.watch(ctx)
	}
	if a.reservation != nil {
		a.reservation.watch(ctx, r.ledger.mu)
	}
	if stop != nil {
		stop()
	}
	if a.startedOver {
		tried.Reset()
	}
	return a.lease, a.value, outcome
}

// acquisition is one call of AcquireOrQueue.
type acquisition struct {
	set       *EndpointSet
	rpc       <-chan struct{}
	deadline  time.Time // zero without one
	tried     []*endpoint
	readySets []*ReadySet

	lease       Lease
	value       any
	startedOver bool
	waiter      *waiter      // the RPC has begun to wait
	reservation *reservation // likewise, for a member that connects
}

// acquireOrQueue takes the ledger's mutex. It also returns what ends the watch over a
// waiter that is done, which may call others.
func (a *acquisition) acquireOrQueue() (outcome Outcome, stop func() bool) {
	r := a.set
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	if r.closed {
		return Empty, nil
	}
	if w := r.queue.waiters[a.rpc]; w != nil {
		if w.queued() {
			return Queued, nil
		}
		delete(r.queue.waiters, a.rpc)
		a.lease, a.value = w.lease, w.member.value
		return Chosen, w.stop
	}
	if r.startup != nil {
		if outcome, stop = a.reserved(); outcome != Empty {
			return outcome, stop
		}
	}
	chosen, full := a.choose()
	switch {
	case chosen:
		return Chosen, stop
	case !full:
		return Empty, stop
	case a.rpc == nil || r.queue.queued.Len() >= r.guards.MaxQueued:
		return Refused, stop
	}
	if r.queue.queueSets == nil {
		r.queue.queueSets = a.readySets
	}
	a.waiter = r.newWaiter(a.rpc)
	return Queued, stop
}

// choose chooses for an RPC that does not wait. It reports whether caps are in the
// way.
func (a *acquisition) choose() (chosen, full bool) {
	var m *Member
	if len(a.tried) > 0 {
		if a.lease, m, _ = chooseIn(a.readySets, a.tried, true); m != nil {
			a.value = m.value
			a.set.counters.RetriesToOtherEndpoint++
			return true, false
		}
	}
	if a.lease, m, full = chooseIn(a.readySets, nil, false); full {
		// The ready sets of an old picker may be others than those of now.
		a.lease, m, _ = chooseIn(a.set.queue.queueSets, nil, false)
	}
	if m == nil {
		return false, full
	}
	a.value, a.startedOver = m.value, len(a.tried) > 0
	return true, full
}

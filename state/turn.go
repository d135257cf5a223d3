package state

import "context"

// Outcome says how a call of [EndpointSet.AcquireOrQueue] ended.
type Outcome int

const (
	// Empty: the first ready set has no member to choose and none at its cap.
	Empty Outcome = iota
	// Chosen: the lease is counted.
	Chosen
	// Queued: all members are at their caps, and the RPC waits until the endpoint set
	// wakes it.
	Queued
	// Refused: they are, and as many RPCs wait as may.
	Refused
)

// AcquireOrQueue is Acquire for an RPC that [ReadySet.Acquire] turned away, and for a later
// attempt of one. It chooses
//
//   - of members whose endpoints were not tried, in the first ready set that has one with
//     room;
//   - else, as the RPC starts over and its tries are forgotten, in the first ready set
//     that has one with room. Later ready sets are for the room that the first one
//     lacks: where it has nobody at a cap, it alone counts.
//
// When there is none, nor in the ready sets of [EndpointSet.SetQueueSets], the RPC waits: it takes
// its place behind those that came before, and keeps it until ctx ends. ctx names
// the RPC, by its Done channel; without one, an RPC does not wait. tried may be
// nil.
func (r *EndpointSet) AcquireOrQueue(ctx context.Context, tried *Tried, views ...*ReadySet) (Lease, any, Outcome) {
	t := acquisition{roster: r, views: views}
	if tried != nil {
		t.tried = tried.list()
	}
	if ctx != nil {
		t.rpc = ctx.Done()
	}
	outcome, stop := t.acquireOrQueue()
	if t.waits != nil {
		t.waits.watch(ctx)
	}
	if stop != nil {
		stop()
	}
	if t.over {
		tried.Reset()
	}
	return t.lease, t.value, outcome
}

// turn is one call of AcquireOrQueue.
type acquisition struct {
	roster *EndpointSet
	rpc    <-chan struct{}
	tried  []*endpoint
	views  []*ReadySet

	lease Lease
	value any
	over  bool    // the RPC has started over
	waits *waiter // it has begun to wait
}

// take returns what ends the watch over a ticket that is used up, too.
func (t *acquisition) acquireOrQueue() (outcome Outcome, stop func() bool) {
	r := t.roster
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	if k := r.queue.waiters[t.rpc]; k != nil {
		if k.at != nil {
			return Queued, nil
		}
		delete(r.queue.waiters, t.rpc)
		t.lease, t.value = k.lease, k.member.value
		return Chosen, k.stop
	}
	full := t.choose()
	switch {
	case t.lease.entry != nil:
		return Chosen, nil
	case !full:
		return Empty, nil
	case t.rpc == nil || r.queue.line.Len() >= r.guards.MaxQueued:
		return Refused, nil
	}
	if r.queue.queueSets == nil {
		r.queue.queueSets = t.views
	}
	t.waits = r.enqueue(t.rpc)
	return Queued, nil
}

// choose acquires for an RPC that has no ticket. It reports whether caps are in
// the way.
func (t *acquisition) choose() (full bool) {
	if len(t.tried) > 0 {
		for _, v := range t.views {
			if lease, value, ok := v.elsewhere(t.tried); ok {
				t.lease, t.value = lease, value
				t.roster.account.RetriesToOtherEndpoint++
				return false
			}
		}
	}
	lease, m, full := acquireIn(t.views)
	if full {
		lease, m, _ = acquireIn(t.roster.queue.queueSets) // an old picker's ready sets may be others
	}
	if m != nil {
		t.lease, t.value, t.over = lease, m.value, len(t.tried) > 0
	}
	return full
}

// acquireIn acquires in the first ready set that has room. Where the first has nobody
// at a cap, it alone counts. Caller holds mu.
func acquireIn(views []*ReadySet) (_ Lease, _ *Member, full bool) {
	for _, v := range views {
		if lease, c := v.acquire(); c.member != nil {
			return lease, c.member, false
		}
		if full = full || v.full > 0; !full {
			break
		}
	}
	return Lease{}, nil, full
}

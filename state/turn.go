package state

import "context"

// Outcome says how a call of [Roster.Turn] ended.
type Outcome int

const (
	// Empty: the first view has no member to choose and none at its cap.
	Empty Outcome = iota
	// Chosen: the lease is counted.
	Chosen
	// Queued: all members are at their caps, and the RPC waits until the roster
	// wakes it.
	Queued
	// Refused: they are, and as many RPCs wait as may.
	Refused
)

// Turn is Acquire for an RPC that [View.Acquire] turned away, and for a later
// attempt of one. It chooses
//
//   - of members whose nodes were not tried, in the first view that has one with
//     room;
//   - else, as the RPC starts over and its tries are forgotten, in the first view
//     that has one with room. Later views are for the room that the first one
//     lacks: where it has nobody at a cap, it alone counts.
//
// When there is none, nor in the views of [Roster.Serve], the RPC waits: it takes
// its place behind those that came before, and keeps it until ctx ends. ctx names
// the RPC, by its Done channel; without one, an RPC does not wait. tried may be
// nil.
func (r *Roster) Turn(ctx context.Context, tried *Tried, views ...*View) (Lease, any, Outcome) {
	t := turn{roster: r, views: views}
	if tried != nil {
		t.tried = tried.list()
	}
	if ctx != nil {
		t.rpc = ctx.Done()
	}
	outcome, stop := t.take()
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

// turn is one call of Turn.
type turn struct {
	roster *Roster
	rpc    <-chan struct{}
	tried  []*node
	views  []*View

	lease Lease
	value any
	over  bool    // the RPC has started over
	waits *ticket // it has begun to wait
}

// take returns what ends the watch over a ticket that is used up, too.
func (t *turn) take() (outcome Outcome, stop func() bool) {
	r := t.roster
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	if k := r.queue.tickets[t.rpc]; k != nil {
		if k.at != nil {
			return Queued, nil
		}
		delete(r.queue.tickets, t.rpc)
		t.lease, t.value = k.lease, k.member.value
		return Chosen, k.stop
	}
	full := t.choose()
	switch {
	case t.lease.slot != nil:
		return Chosen, nil
	case !full:
		return Empty, nil
	case t.rpc == nil || r.queue.line.Len() >= r.guards.MaxQueued:
		return Refused, nil
	}
	if r.queue.serving == nil {
		r.queue.serving = t.views
	}
	t.waits = r.enqueue(t.rpc)
	return Queued, nil
}

// choose acquires for an RPC that has no ticket. It reports whether caps are in
// the way.
func (t *turn) choose() (full bool) {
	if len(t.tried) > 0 {
		for _, v := range t.views {
			if lease, value, ok := v.elsewhere(t.tried); ok {
				t.lease, t.value = lease, value
				t.roster.account.Elsewhere++
				return false
			}
		}
	}
	lease, m, full := acquireIn(t.views)
	if full {
		lease, m, _ = acquireIn(t.roster.queue.serving) // an old picker's views may be others
	}
	if m != nil {
		t.lease, t.value, t.over = lease, m.value, len(t.tried) > 0
	}
	return full
}

// acquireIn acquires in the first view that has room. Where the first has nobody
// at a cap, it alone counts. Caller holds mu.
func acquireIn(views []*View) (_ Lease, _ *Member, full bool) {
	for _, v := range views {
		if lease, e, ok := v.acquire(); ok {
			return lease, e.member, false
		}
		if full = full || v.full > 0; !full {
			break
		}
	}
	return Lease{}, nil, full
}

package state

import (
	"context"
	"slices"
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
// [ReadySet.SetConnecting] says. Else it chooses, in the first ready set that has one
// with room, a member; for a later attempt, one whose endpoint was not tried. Later ready
// sets are for the room that the first one lacks: where it has nobody at a cap, it alone
// counts.
//
// When there is none, nor in the ready sets of [EndpointSet.SetQueueSets], the RPC
// waits: it takes its place behind those that came before, and keeps it until ctx
// ends. ctx names the RPC, by its Done channel; without one, an RPC does not wait.
//
// A later attempt waits as long as an endpoint that was not tried is ready, and at
// most until FailurePenalty after the attempt before it has failed. Then it starts
// over, as one that may not wait does at once: its tries are forgotten. tried may be
// nil.
func (r *EndpointSet) AcquireOrQueue(ctx context.Context, tried *Tried, sets ...*ReadySet) (Lease, any, Outcome) {
	a := acquisition{set: r, readySets: sets, mark: MarkOf(ctx)}
	if tried != nil {
		a.tried, a.sinceFailure = tried.list()
	}
	if ctx != nil {
		a.rpc = ctx.Done()
	}
	if a.rpc != nil {
		a.deadline, _ = ctx.Deadline()
	}
	a.cost = CostOf(ctx).ofRPC(a.rpc, a.mark, tried)
	outcome, stop := a.acquireOrQueue()
	if a.waiter != nil {
		a.waiter.watch(ctx)
	}
	if a.reservation != nil {
		a.reservation.watch(ctx)
	}
	if stop != nil {
		stop()
	}
	if a.startedOver && tried != nil {
		tried.Reset()
	}
	if outcome == Chosen {
		StopWaiting(ctx)
	} else if a.rpc != nil {
		passOn(a.rpc, r)
	}
	return a.lease, a.value, outcome
}

// acquisition is one call of AcquireOrQueue.
type acquisition struct {
	set          *EndpointSet
	rpc          <-chan struct{}
	deadline     time.Time // zero without one
	mark         *Mark     // nil unless the RPC is a session's
	cost         *Cost     // nil where it is one unit
	tried        []*endpoint
	sinceFailure time.Duration
	readySets    []*ReadySet

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
	mv := a.move()
	if mv != nil && a.cost == nil {
		a.cost = mv.cost
	}
	took := mv != nil && a.takePlace(mv)
	if outcome = Chosen; !took {
		outcome, stop = a.acquire()
	}
	if s := a.lease.entry; s != nil && a.mark != nil {
		a.mark.bind(s, r, took)
	}
	return outcome, stop
}

// acquire does so for an RPC that has no place.
func (a *acquisition) acquire() (outcome Outcome, stop func() bool) {
	r := a.set
	if w := r.queue.waiters[a.rpc]; w != nil {
		return a.waitOn(w)
	}
	if r.startup != nil {
		if outcome, stop = a.reserved(); outcome != Empty {
			return outcome, stop
		}
	}
	full := a.choose()
	startedOver := a.startedOver
	if a.lease.entry != nil {
		return Chosen, stop
	}
	a.startedOver = false // its tries are forgotten when it is chosen, not before
	switch {
	case !full:
		return Empty, stop
	case !a.mayWait() && a.chooseNoRoom():
		a.startedOver = startedOver
		return Chosen, stop
	case !a.mayWait():
		return Refused, stop
	}
	a.serving()
	a.waiter = r.newWaiter(a.rpc, a.tried)
	a.waiter.startedOver = startedOver
	a.waiter.cost = a.cost
	a.waiter.setPatience(a.patience())
	return Queued, stop
}

// waitOn is for an RPC that waits already.
func (a *acquisition) waitOn(w *waiter) (outcome Outcome, stop func() bool) {
	w.seen()
	if w.is(phaseLapsed) {
		if len(a.tried) == 0 || a.patience() <= 0 {
			a.tried = nil
		}
		w.rejoin(a.tried)
		w.setPatience(a.patience())
	}
	if !w.is(phaseGranted) {
		return Queued, nil
	}
	a.startedOver = w.startedOver
	if w.tried != nil {
		a.set.counters.RetriesToOtherEndpoint++
	}
	m := w.member
	m.connection.picks++
	a.lease, a.value = w.leave(), m.value
	a.set.queue.lost--
	w.remove()
	return Chosen, w.stop
}

// mayWait reports whether the RPC may wait for room.
func (a *acquisition) mayWait() bool {
	return a.rpc != nil && a.set.queue.waiting() < a.set.guards.MaxQueued
}

// patience is how much longer the RPC waits for an endpoint that it has not tried.
func (a *acquisition) patience() time.Duration {
	return a.set.guards.FailurePenalty - a.sinceFailure
}

// choose chooses for an RPC that does not wait. It reports whether caps are in the
// way. An RPC that starts over has no tries afterwards.
func (a *acquisition) choose() (full bool) {
	q := &a.set.queue
	if len(a.tried) > 0 {
		if chosen, _ := a.chooseIn(a.readySets, q.queueSets); chosen {
			a.set.counters.RetriesToOtherEndpoint++
			return true
		}
		if a.mayWait() && a.patience() > 0 && othersReady(a.serving(), a.tried) {
			return true
		}
		a.startedOver = true
	}
	a.tried = nil
	_, full = a.chooseIn(a.readySets, q.queueSets)
	return full
}

// chooseNoRoom chooses, for an RPC that may not wait, a member whose connection has no
// room and whose cap does: nobody has configured that limit, so no RPC fails by it. One
// whose connection lacks room by penalties alone comes last.
func (a *acquisition) chooseNoRoom() bool {
	sets := slices.Concat(a.readySets, a.set.queue.queueSets)
	for _, v := range sets {
		if a.take(v.choose(&v.noRoom, true, a.cost)) {
			return true
		}
	}
	return slices.ContainsFunc(sets, func(v *ReadySet) bool { return a.take(v.choosePenalized(a.cost)) })
}

// take takes up a choice, and reports whether it is one.
func (a *acquisition) take(lease Lease, c choice) bool {
	a.lease, a.value = lease, c.value
	return c.connection != nil
}

// serving returns the ready sets in which an RPC that waits may find room. Until the
// endpoint set is told, they are those of the first that waits.
func (a *acquisition) serving() []*ReadySet {
	if q := &a.set.queue; !q.told && q.queueSets == nil {
		q.queueSets = a.readySets
	}
	return a.set.queue.queueSets
}

// chooseIn chooses in ready sets, or in those of now: an old picker has others.
func (a *acquisition) chooseIn(sets, now []*ReadySet) (chosen, full bool) {
	lease, m, full := chooseIn(sets, a.tried, false, a.cost)
	if m == nil && (full || len(a.tried) > 0) {
		lease, m, _ = chooseIn(now, a.tried, false, a.cost)
	}
	if m != nil {
		a.lease, a.value = lease, m.value
	}
	return m != nil, full
}

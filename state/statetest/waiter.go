package statetest

import (
	"slices"
	"time"
)

// rpc is an RPC that may wait.
type rpc struct {
	cost         *cost         // nil without one
	deadline     time.Duration // 0: none
	waiters      []*waiter     // at most one in each endpoint set, in the order in which they began
	reservations []*reservation
}

// waiter is an RPC that waits in an endpoint set, or was granted room, or has lapsed.
type waiter struct {
	set         *endpointSet
	rpc         *rpc
	arrival     int
	phase       phase
	tried       []*endpoint // it waits for another one
	startedOver bool        // it does so no more
	patience    time.Duration
	lease       *lease        // while it is granted
	readySet    int           // in which it is
	fresh       bool          // granted or resumed since the last publish
	paused      bool          // it has lapsed until RPCs are served again
	doubtful    bool          // it was paused, and has not been seen since
	due         time.Duration // when it starts over, or lapses, or waits again; 0: never
}

type phase int

const (
	queued phase = iota
	granted
	lapsed
)

// waiterOf returns the waiter of an RPC.
func (r *endpointSet) waiterOf(q *rpc) *waiter {
	if i := slices.IndexFunc(r.waiters, func(t *waiter) bool { return t.rpc == q }); i >= 0 {
		return r.waiters[i]
	}
	return nil
}

// in returns the waiters in a phase, by arrival.
func (r *endpointSet) in(p phase) []*waiter {
	return slices.DeleteFunc(slices.Clone(r.waiters), func(t *waiter) bool { return t.phase != p })
}

func (r *endpointSet) waiting() []*waiter { return r.in(queued) }
func (r *endpointSet) granted() []*waiter { return r.in(granted) }

// enqueue lets an RPC wait, for an endpoint that it has not tried if there are some.
func (m *model) enqueue(r *endpointSet, q *rpc, tried []string) *waiter {
	m.arrivals++
	r.queued++
	t := &waiter{set: r, rpc: q, arrival: m.arrivals, tried: m.endpointsAt(tried)}
	r.waiters = append(r.waiters, t)
	q.waiters = append(q.waiters, t)
	m.setPatience(t)
	return t
}

func (m *model) endpointsAt(addrs []string) (ns []*endpoint) {
	for _, addr := range addrs {
		ns = append(ns, m.endpoints[addr])
	}
	return ns
}

// setPatience has t, if it waits for an endpoint that it has not tried, do so for a time.
func (m *model) setPatience(t *waiter) {
	if t.tried != nil && t.phase == queued {
		t.patience = m.now + t.set.guards.FailurePenalty
		t.due = t.patience
	}
}

// except returns the addresses of the endpoints that t has tried; one that has gone
// since is another one when it comes back.
func (t *waiter) except() []string {
	var addrs []string
	for _, n := range t.tried {
		if n.gone {
			addrs = append(addrs, "gone")
		} else {
			addrs = append(addrs, n.addr)
		}
	}
	return addrs
}

// rejoin lets t, which has lapsed, wait at its place.
func (m *model) rejoin(t *waiter, tried []string) {
	t.startedOver = t.startedOver || len(tried) == 0 && t.tried != nil
	t.phase, t.tried, t.due, t.paused = queued, m.endpointsAt(tried), 0, false
	m.grant(t.set)
}

// seen notes that t's RPC has asked again.
func (t *waiter) seen() {
	if t.doubtful && t.phase == queued {
		t.due = 0
	}
	t.doubtful = false
}

func (t *waiter) startOver() { t.tried, t.startedOver, t.due = nil, true, 0 }

// remove ends t; what it was granted is the caller's.
func (t *waiter) remove() {
	of := func(all []*waiter) []*waiter {
		return slices.DeleteFunc(all, func(o *waiter) bool { return o == t })
	}
	t.set.waiters, t.rpc.waiters = of(t.set.waiters), of(t.rpc.waiters)
}

// giveUp takes what t was granted from it.
func (t *waiter) giveUp() *lease {
	le := t.lease
	if le != nil {
		t.set.lost++
	}
	t.lease = nil
	return le
}

// leave ends t; what it was granted goes on.
func (m *model) leave(t *waiter) {
	t.remove()
	if le := t.giveUp(); le != nil {
		m.endLease(le)
	}
}

// StopWaiting ends all that an RPC waits for.
func (m *model) StopWaiting(q *rpc) {
	m.served = append(m.served, q)
	m.settle()
}

func (m *model) stopWaiting(q *rpc) {
	for len(q.waiters) > 0 {
		m.leave(q.waiters[0])
	}
	for len(q.reservations) > 0 {
		m.endReservation(q.reservations[0])
	}
}

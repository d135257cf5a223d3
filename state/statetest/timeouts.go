package statetest

import (
	"cmp"
	"slices"
	"time"
)

// lapseAfter is how long after a publish a grant is kept.
const lapseAfter = 100 * time.Millisecond

// Publish notes that RPCs were woken.
func (m *model) Publish(id int) {
	for _, t := range m.sets[id].waiters {
		if t.fresh && t.due == 0 && (t.phase == granted || t.phase == queued && t.doubtful) {
			t.due = m.now + lapseAfter
		}
		t.fresh = false
	}
}

// expireWaits does what waiters are due for.
func (m *model) expireWaits() {
	type timedOut struct {
		*waiter
		phase phase
	}
	var due []timedOut
	for _, r := range m.sets {
		for _, t := range r.waiters {
			if t.due > 0 && t.due <= m.now {
				due = append(due, timedOut{t, t.phase})
			}
		}
	}
	slices.SortFunc(due, func(a, b timedOut) int { return cmp.Or(cmp.Compare(a.due, b.due), a.arrival-b.arrival) })
	for i, t := range due {
		t.due = 0
		if t.phase == queued && t.doubtful {
			m.lapse(t.waiter)
			due[i].phase = none
		}
	}
	for _, t := range due {
		switch r := t.set; {
		case t.due != 0 || t.phase != t.waiter.phase || !slices.Contains(r.waiters, t.waiter):
		case t.phase == granted:
			m.lapse(t.waiter)
		case t.phase == queued && t.tried != nil:
			t.startOver()
			m.grant(r)
		case t.phase == lapsed && t.rpc.isQueued():
			m.rejoin(t.waiter, nil)
		}
	}
}

// isQueued reports whether q waits anywhere.
func (q *rpc) isQueued() bool {
	return slices.ContainsFunc(q.waiters, func(t *waiter) bool { return t.phase == queued })
}

// lapse has t passed over; what it was granted goes on.
func (m *model) lapse(t *waiter) {
	le := t.giveUp()
	t.phase, t.due = lapsed, 0
	if le != nil {
		m.endLease(le)
	}
}

// Pause is lapse for an RPC that may wait no more, but where an endpoint set that serves
// RPCs was asked.
func (m *model) Pause(q *rpc, asked *endpointSet) {
	defer m.settle()
	for _, t := range slices.Clone(q.waiters) {
		if !slices.Contains(q.waiters, t) || t.set == asked && len(asked.queueSets) > 0 {
			continue
		}
		m.lapse(t)
		t.startedOver = t.startedOver || t.tried != nil
		t.tried, t.paused = nil, true
	}
}

// passOn has an RPC that asks in r give up what it was granted elsewhere, until later.
// Where it has lapsed, it waits again later, too.
func (m *model) passOn(q *rpc, r *endpointSet) {
	for _, t := range slices.Clone(q.waiters) {
		if t.set == r {
			continue
		}
		if t.phase == granted {
			m.lapse(t)
		}
		if t.phase == lapsed && t.due == 0 {
			t.due = m.now + lapseAfter
		}
	}
}

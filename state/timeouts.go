package state

import (
	"cmp"
	"container/heap"
	"time"
)

// lapseAfter is how long after the publish that follows it a grant is kept for its
// RPC: one that waits in Pick takes it up at once.
const lapseAfter = 100 * time.Millisecond

// lapseTicks is how many ticks there must have been in that time: where the process is held
// up, as by its share of the processors, its RPCs are as late as its ticks.
const lapseTicks = 8

// notTimed is the index of a waiter that has no timeout.
const notTimed = -1

// timeouts are the waiters of a ledger that something is to become of, a heap by when.
type timeouts struct{ waiters []*waiter }

// setTimeout has something become of w at a point of time.
func (l *Ledger) setTimeout(w *waiter, due time.Duration) {
	l.timeouts.remove(w)
	w.due, w.since = due, l.clock.ticks
	heap.Push(&l.timeouts, w)
	l.startClock()
}

func (t *timeouts) remove(w *waiter) {
	if w.timeout != notTimed {
		heap.Remove(t, w.timeout)
	}
}

// Published tells the endpoint set that RPCs which wait have been woken by a picker:
// what they were granted until now lapses when it is not taken up soon.
func (r *EndpointSet) Published() {
	l := r.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(r.queue.fresh) == 0 {
		return
	}
	due := l.clock.read() + lapseAfter
	for _, w := range r.queue.fresh {
		if (w.is(phaseGranted) || w.is(phaseQueued) && w.doubtful.Load()) && w.timeout == notTimed {
			l.setTimeout(w, due)
		}
	}
	clear(r.queue.fresh)
	r.queue.fresh = r.queue.fresh[:0]
}

// expireWaits does what waits are due for: a grant lapses, and so does one that was
// paused and not seen since; an RPC that has waited long
// enough for an endpoint that it did not try takes any; and one that has passed on a
// grant, and still waits elsewhere, is offered room again.
func (l *Ledger) expireWaits() {
	type timedOut struct {
		*waiter
		phase int32
	}
	var due []timedOut
	for len(l.timeouts.waiters) > 0 && l.timeouts.waiters[0].due <= l.clock.now {
		w := heap.Pop(&l.timeouts).(*waiter)
		doubtful := w.is(phaseQueued) && w.doubtful.Load()
		switch {
		case (doubtful || w.is(phaseGranted)) && l.clock.ticks-w.since < lapseTicks:
			w.due = l.clock.now + Tick
			heap.Push(&l.timeouts, w)
		case doubtful:
			w.lapse() // before others give it room
		default:
			due = append(due, timedOut{w, w.phase.Load()})
		}
	}
	for _, w := range due {
		switch {
		case w.timeout != notTimed || !w.is(w.phase): // something else has become of it
		case w.is(phaseGranted):
			w.lapse()
		case w.is(phaseQueued) && w.tried != nil:
			w.startOver()
			w.set.grant()
		case w.is(phaseLapsed) && w.waitsElsewhere():
			w.rejoin(nil)
		}
	}
}

// Len, Less, Swap, Push and Pop are for container/heap.
func (t *timeouts) Len() int { return len(t.waiters) }

func (t *timeouts) Less(i, j int) bool {
	a, b := t.waiters[i], t.waiters[j]
	return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.arrival, b.arrival)) < 0
}

func (t *timeouts) Swap(i, j int) {
	ws := t.waiters
	ws[i], ws[j] = ws[j], ws[i]
	ws[i].timeout, ws[j].timeout = i, j
}

func (t *timeouts) Push(x any) {
	w := x.(*waiter)
	w.timeout = len(t.waiters)
	t.waiters = append(t.waiters, w)
}

func (t *timeouts) Pop() any {
	last := len(t.waiters) - 1
	w := t.waiters[last]
	t.waiters[last] = nil
	t.waiters = t.waiters[:last]
	w.timeout = notTimed
	return w
}

package statetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// lapseAfter is how long after a publish a grant is kept.
const lapseAfter = 100 * time.Millisecond

// waiter is an RPC that waits, or was granted room on an endpoint, or has lapsed.
type waiter struct {
	set      *endpointSet
	arrival  int
	tried    []*endpoint // it waits for another one
	patience time.Duration
	on       *endpoint // while it is granted
	start    time.Duration
	fresh    bool          // granted or resumed since the last publish
	paused   bool          // it has lapsed until RPCs are served again
	doubtful bool          // it was paused, and has not been seen since
	due      time.Duration // when it starts over, or lapses; 0: never
}

// acquisition is what a call of EndpointSet.AcquireOrQueue may come to.
type acquisition struct {
	outcome state.Outcome
	choice  // among whom, when chosen
	retry   bool
	granted bool
}

// expect returns what a call may come to. t is the RPC's waiter, if it has one.
func (m *model) expect(r *endpointSet, t *waiter, waits bool, readySets []int, tried []string) acquisition {
	switch {
	case t != nil && slices.Contains(r.lapsed, t):
		if c, _ := r.bestIn(r.queueSets, true, nil); len(c.best) > 0 {
			return acquisition{outcome: state.Chosen, choice: c}
		}
		return acquisition{outcome: state.Queued}
	case t != nil && t.on == nil:
		return acquisition{outcome: state.Queued}
	case t != nil:
		return acquisition{outcome: state.Chosen, choice: choice{best: []*member{r.members[t.on.addr]}}, granted: true}
	}
	waits = waits && len(r.waiting) < r.guards.MaxQueued
	if len(tried) > 0 {
		for _, sets := range [][]int{readySets, r.queueSets} {
			c, _ := r.bestIn(sets, false, tried)
			if len(c.best) > 0 {
				return acquisition{outcome: state.Chosen, choice: c, retry: true}
			}
		}
		if waits && r.guards.FailurePenalty > 0 && r.othersReady(r.serving(readySets), tried) {
			return acquisition{outcome: state.Queued, retry: true}
		}
	}
	c, full := r.bestIn(readySets, false, nil)
	if full {
		c, _ = r.bestIn(r.queueSets, false, nil)
	}
	switch {
	case len(c.best) > 0:
		return acquisition{outcome: state.Chosen, choice: c}
	case !full:
		return acquisition{outcome: state.Empty}
	case !waits:
		return acquisition{outcome: state.Refused}
	}
	return acquisition{outcome: state.Queued}
}

// serving returns where there may be room for RPCs that wait.
func (r *endpointSet) serving(readySets []int) []int {
	if !r.told && r.queueSets == nil {
		r.queueSets = readySets
	}
	return r.queueSets
}

// othersReady reports whether a ready set has a member that was not tried.
func (r *endpointSet) othersReady(readySets []int, tried []string) bool {
	return len(r.those(func(mb *member) bool {
		return mb.eligible() && slices.Contains(readySets, mb.readySet) && !slices.Contains(tried, mb.endpoint.addr)
	})) > 0
}

// enqueue lets an RPC wait, for an endpoint that it has not tried if there are some.
func (m *model) enqueue(r *endpointSet, readySets []int, tried []string) *waiter {
	r.serving(readySets)
	m.arrivals++
	r.queued++
	t := &waiter{set: r, arrival: m.arrivals}
	for _, addr := range tried {
		t.tried = append(t.tried, m.endpoints[addr])
	}
	if tried != nil {
		t.patience = m.now + r.guards.FailurePenalty
		t.due = t.patience
	}
	r.waiting = append(r.waiting, t)
	return t
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

// rejoin lets an RPC that has lapsed wait at its place.
func (r *endpointSet) rejoin(t *waiter) {
	r.lapsed = without(r.lapsed, t)
	t.tried, t.due, t.paused = nil, 0, false
	r.wait(t)
}

func (r *endpointSet) wait(t *waiter) {
	r.waiting = append(r.waiting, t)
	slices.SortFunc(r.waiting, func(a, b *waiter) int { return a.arrival - b.arrival })
}

// Publish notes that RPCs were woken.
func (m *model) Publish(id int) {
	r := m.sets[id]
	for _, t := range slices.Concat(r.granted, r.waiting, r.lapsed) {
		if t.fresh && t.due == 0 && (t.on != nil || t.doubtful && slices.Contains(r.waiting, t)) {
			t.due = m.now + lapseAfter
		}
		t.fresh = false
	}
}

// expireWaits does what waiters are due for.
func (m *model) expireWaits() {
	var due []*waiter
	for _, r := range m.sets {
		for _, t := range slices.Concat(r.waiting, r.granted) {
			if t.due > 0 && t.due <= m.now {
				due = append(due, t)
			}
		}
	}
	slices.SortFunc(due, func(a, b *waiter) int { return cmp.Or(cmp.Compare(a.due, b.due), a.arrival-b.arrival) })
	for _, t := range due {
		if slices.Contains(t.set.waiting, t) && t.doubtful {
			m.lapse(t)
		}
	}
	for _, t := range due {
		switch r := t.set; {
		case slices.Contains(r.granted, t) && t.due > 0:
			m.lapse(t)
		case slices.Contains(r.waiting, t) && t.due > 0:
			t.startOver()
			m.grant(r)
		}
	}
}

// lapse has t passed over; what it was granted goes on.
func (m *model) lapse(t *waiter) {
	r, n := t.set, t.on
	r.waiting, r.granted, r.lapsed = without(r.waiting, t), without(r.granted, t), append(without(r.lapsed, t), t)
	if t.on, t.due = nil, 0; n != nil {
		r.lost++
		m.endLease(n)
	}
}

// pause is lapse for an RPC that may wait no more.
func (m *model) pause(t *waiter) {
	m.lapse(t)
	t.tried, t.paused = nil, true
}

// seen notes that t's RPC has asked again.
func (t *waiter) seen() {
	if t.doubtful && t.on == nil {
		t.due = 0
	}
	t.doubtful = false
}

func (t *waiter) startOver() { t.tried, t.due = nil, 0 }

// Serve tells an endpoint set where those that wait may find room.
func (m *model) Serve(id int, readySets []int) {
	r := m.sets[id]
	if len(r.queueSets) == 0 && len(readySets) > 0 {
		for _, t := range slices.Clone(r.lapsed) {
			if t.paused {
				r.lapsed = without(r.lapsed, t)
				t.paused, t.doubtful, t.fresh, t.due = false, true, true, 0
				r.wait(t)
			}
		}
	}
	r.queueSets, r.told = readySets, true
	m.takeBack(r, func(t *waiter) bool { return !slices.Contains(readySets, r.members[t.on.addr].readySet) })
	m.grant(r)
}

// leave ends a waiter; what it was granted goes on.
func (m *model) leave(t *waiter) {
	t.set.waiting = without(t.set.waiting, t)
	t.set.granted = without(t.set.granted, t)
	t.set.lapsed = without(t.set.lapsed, t)
	if t.on != nil {
		t.set.lost++
		m.endLease(t.on)
	}
}

// used notes that an RPC has taken up what it was granted.
func (m *model) used(t *waiter) {
	t.set.granted = without(t.set.granted, t)
	if t.tried != nil {
		t.set.retries++
	}
}

func without(ts []*waiter, t *waiter) []*waiter {
	return slices.DeleteFunc(ts, func(o *waiter) bool { return o == t })
}

func (m *model) grant(r *endpointSet) { m.offerIn([]*endpointSet{r}) }

// next returns the first that waits and that there is room for, with it.
func (r *endpointSet) next() (*waiter, choice) {
	if len(r.queueSets) == 0 {
		return nil, choice{}
	}
	for _, t := range r.waiting {
		if t.tried != nil && !r.othersReady(r.queueSets, t.except()) {
			t.startOver()
		}
	}
	for _, t := range r.waiting {
		if c, _ := r.bestIn(r.queueSets, true, t.except()); len(c.best) > 0 {
			return t, c
		}
	}
	return nil, choice{}
}

// give gives room to one that waits. Where several members are equal, it is taken up
// at once, so that it is known which one it was.
func (m *model) give(t *waiter, c choice) {
	r := t.set
	r.waiting = without(r.waiting, t)
	r.granted = append(r.granted, t)
	r.woken = true
	addr := c.best[0].endpoint.addr
	if among := sorted(c.best); len(among) > 1 {
		var err error
		if addr, err = m.takeUp(t, among); err != nil {
			m.err = cmp.Or(m.err, err)
			addr = among[0]
		}
		m.used(t)
	}
	t.on, t.start, t.fresh, t.due = m.endpoints[addr], m.now, true, 0
	m.Choose(r.id, c, addr, t.except()...)
}

// offer gives the room that n has to those that wait for it, by arrival.
func (m *model) offer(n *endpoint) {
	var rs []*endpointSet
	for _, mb := range n.members {
		if mb.eligible() {
			rs = append(rs, mb.set)
		}
	}
	m.offerIn(rs)
}

func (m *model) offerIn(rs []*endpointSet) {
	for {
		var first *waiter
		var room choice
		for _, r := range rs {
			if t, c := r.next(); t != nil && (first == nil || t.arrival < first.arrival) {
				first, room = t, c
			}
		}
		if first == nil {
			return
		}
		m.give(first, room)
	}
}

// revoke takes back what was granted on mb.
func (m *model) revoke(mb *member) {
	m.takeBack(mb.set, func(t *waiter) bool { return t.on == mb.endpoint })
	m.grant(mb.set)
}

// takeBack takes back some of what was granted. Those RPCs wait again, at their places.
func (m *model) takeBack(r *endpointSet, some func(*waiter) bool) {
	var back []*waiter
	for _, t := range slices.Clone(r.granted) {
		if some(t) {
			r.granted = without(r.granted, t)
			r.lost++
			r.wait(t)
			if t.due = 0; t.tried != nil {
				t.due = t.patience
			}
			back = append(back, t)
		}
	}
	slices.SortFunc(back, func(a, b *waiter) int { return a.arrival - b.arrival })
	var leases []*endpoint
	for _, t := range back {
		leases = append(leases, t.on)
		t.on = nil
	}
	for _, n := range leases {
		m.endLease(n)
	}
}

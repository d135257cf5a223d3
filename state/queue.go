package state

import (
	"cmp"
	"container/list"
	"context"
	"slices"
)

// queue is the RPCs of a roster that wait for a member below its cap, in order
// of arrival. Room goes to the first of them in the step that makes it: a ticket
// is granted a lease, which its RPC takes up when it is woken. So nobody
// overtakes, no wake-up is lost and a cap holds for those that wait, too. The
// ledger's mutex guards it.
type queue struct {
	tickets map[<-chan struct{}]*ticket // waiting or granted, by RPC
	line    list.List                   // of the tickets that wait
	serving []*View                     // where there may be room for them
}

// ticket is an RPC's place in the queue.
type ticket struct {
	roster  *Roster
	rpc     <-chan struct{}
	arrival uint64        // in the ledger
	at      *list.Element // in the line; nil once granted
	lease   Lease         // once granted, with its member
	member  *Member
	stop    func() bool // ends the watch over the RPC's end
}

// Serve tells the roster in which of its views, the first before the second, the
// RPCs that wait may find room.
func (r *Roster) Serve(views ...*View) {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	r.queue.serving = views
	r.grant()
}

// enqueue gives the RPC a ticket. Caller holds mu.
func (r *Roster) enqueue(rpc <-chan struct{}) *ticket {
	l := r.ledger
	l.arrivals++
	t := &ticket{roster: r, rpc: rpc, arrival: l.arrivals}
	if r.queue.tickets == nil {
		r.queue.tickets = map[<-chan struct{}]*ticket{}
	}
	r.queue.tickets[rpc] = t
	r.stand(t)
	r.account.Queued++
	return t
}

// stand puts t into the line at its place: the end, or, once it was granted
// something, near the front.
func (r *Roster) stand(t *ticket) {
	line := &r.queue.line
	r.ledger.waiting++
	if last := line.Back(); last == nil || last.Value.(*ticket).arrival < t.arrival {
		t.at = line.PushBack(t)
		return
	}
	after := line.Front()
	for after.Value.(*ticket).arrival < t.arrival {
		after = after.Next()
	}
	t.at = line.InsertBefore(t, after)
}

// step takes t out of the line.
func (r *Roster) step(t *ticket) {
	r.queue.line.Remove(t.at)
	t.at = nil
	r.ledger.waiting--
}

// watch sees to it that t goes when its RPC ends. Caller does not hold mu: a
// context may be anybody's.
func (t *ticket) watch(ctx context.Context) {
	mu := t.roster.ledger.mu
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		t.leave()
	})
	mu.Lock()
	t.stop = stop
	gone := t.roster.queue.tickets[t.rpc] != t
	mu.Unlock()
	if gone {
		stop()
	}
}

// leave ends t, wherever it stands; what it was granted goes to the next.
// Caller holds mu.
func (t *ticket) leave() {
	r := t.roster
	if r.queue.tickets[t.rpc] != t {
		return
	}
	delete(r.queue.tickets, t.rpc)
	if t.at != nil {
		r.step(t)
		return
	}
	t.lease.slot.settle(false)
}

// grant gives room to those of the roster's RPCs that wait, in their order, as
// long as there is some. Caller holds mu.
func (r *Roster) grant() {
	for r.grantOne() {
	}
}

func (r *Roster) grantOne() bool {
	first := r.queue.line.Front()
	if first == nil {
		return false
	}
	lease, m, _ := acquireIn(r.queue.serving)
	if m == nil {
		return false
	}
	t := first.Value.(*ticket)
	r.step(t)
	t.lease, t.member = lease, m
	select {
	case r.guards.Wake <- struct{}{}:
	default:
	}
	return true
}

// offer gives the room that n has to the RPCs that wait for it, of all rosters,
// in order of arrival. Caller holds mu.
func (l *Ledger) offer(n *node) {
	for again := true; again; {
		var rs []*Roster
		for _, m := range n.members {
			if m.seat != none && m.roster.queue.line.Len() > 0 {
				rs = append(rs, m.roster)
			}
		}
		slices.SortFunc(rs, func(a, b *Roster) int { return cmp.Compare(a.firstArrival(), b.firstArrival()) })
		again = slices.ContainsFunc(rs, (*Roster).grantOne)
	}
}

func (r *Roster) firstArrival() uint64 { return r.queue.line.Front().Value.(*ticket).arrival }

// revoke takes back what was granted on m, which may not be chosen any more; its
// RPCs wait again, at their places, unless there is room elsewhere. Caller holds
// mu.
func (r *Roster) revoke(m *Member) {
	if len(r.queue.tickets) == r.queue.line.Len() {
		return // nothing is granted
	}
	var back []Lease
	for _, t := range r.queue.tickets {
		if t.at == nil && t.member == m {
			back = append(back, t.lease)
			t.lease, t.member = Lease{}, nil
			r.stand(t)
		}
	}
	for _, lease := range back {
		lease.slot.settle(false)
	}
	r.grant()
}

// disperse ends all tickets of a roster that closes. It returns what ends the
// watches over them. Caller holds mu.
func (r *Roster) disperse() []func() bool {
	tickets := r.queue.tickets
	r.ledger.waiting -= r.queue.line.Len()
	r.queue = queue{}
	var stops []func() bool
	for _, t := range tickets {
		if t.stop != nil {
			stops = append(stops, t.stop)
		}
		if t.at == nil {
			t.lease.slot.settle(false)
		}
	}
	return stops
}

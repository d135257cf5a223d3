package state

import (
	"cmp"
	"slices"
	"time"
)

// Endpoint is what a roster is told of an endpoint: the addresses under which
// it is reached, at least one, in any order, and an explicit identity, if it
// has one.
type Endpoint struct {
	ID    string
	Addrs []string
}

// Roster is one balancer's list of endpoints: it finds each one's node, so that
// the load of an endpoint is known again wherever it is listed. It must be
// closed.
type Roster struct {
	ledger  *Ledger
	name    string
	members map[*Member]struct{} // guarded by the ledger's mutex, as is what follows
	views   []*View
	listed  bool // it has had a list
	guards  Guards
	queue   queue
	account *account
}

// Member is one endpoint of a roster. Its node is the endpoint's in the ledger;
// while it is in a view, it stands in that view's order. The ledger's mutex
// guards it.
type Member struct {
	node   *node // nil once it has left
	view   *View // nil while it is not ready
	seat   int32 // in the view's order; none while it may not be chosen
	weight uint32
	limit  int64 // of its node's RPCs in flight
	full   bool  // it is in a view, with a weight, and at its limit
	value  any
	leaves bool // while an update is applied
	busy   bool // RPCs were in flight on its node when it left
	roster *Roster
	id     string
	addrs  []string // sorted, each once

	// Of its slow start.
	cold   bool          // it begins when m is ready
	since  time.Duration // when it began
	share  float64       // of the weight: below 1 while it ramps
	climbs time.Duration // when the share is to rise
	place  int32         // among the view's waits; none when it does not wait
	last   uint64        // the view's picks when it was empty, or chosen, last
	due    uint64        // the pick of the view that is its own
}

func (r *Roster) newMember() *Member {
	return &Member{roster: r, seat: none, place: none, limit: noLimit, share: 1, since: never}
}

// NewRoster adds a roster to the ledger. The name is shown in snapshots.
func (l *Ledger) NewRoster(name string) *Roster {
	r := &Roster{ledger: l, name: name, members: map[*Member]struct{}{}, account: new(account)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rosters[r] = struct{}{}
	return r
}

// Ledger returns the ledger that the roster is on.
func (r *Roster) Ledger() *Ledger { return r.ledger }

// Update changes the list. leave are the members whose endpoints are not listed
// any more, or not as they were; join are the endpoints that are new or changed.
// It returns the member of each of join: one of leave goes on as the member of
// an endpoint that turns out to be its own, the others are gone and in no view.
//
// The node of an endpoint is, in this order:
//
//   - the one with its explicit id;
//   - the one with the same addresses;
//   - of those it shares an address with, the most loaded one, except by an
//     address that more than 64 nodes have: that is a gateway's;
//   - a new one.
//
// A node that has another explicit id is never taken, and no two endpoints of a
// roster get the same node; counts never merge.
func (r *Roster) Update(leave []*Member, join []Endpoint) []*Member {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	joined := make([]*Member, len(join))
	if r.members == nil {
		for i := range joined {
			joined[i] = r.newMember() // gone already
		}
		return joined
	}
	for _, m := range leave {
		m.leaves = m.node != nil && m.roster == r
	}
	join, at := canonicalList(join)
	nodes := r.match(join)
	for i, e := range join {
		joined[at[i]] = r.seat(nodes[i], e)
	}
	for _, m := range leave {
		if m.leaves {
			r.drop(m)
		}
	}
	r.listed = r.listed || len(join) > 0
	return joined
}

// seat gives the endpoint its member on n, or on a new node when n is nil.
func (r *Roster) seat(n *node, e Endpoint) *Member {
	var m *Member
	known := n != nil
	if known {
		m = n.memberOf(r)
	} else {
		n = r.ledger.newNode()
	}
	if m == nil {
		m = r.newMember()
		r.members[m] = struct{}{}
		if r.listed {
			m.cold, m.since = !known || n.cold(), n.since
		}
	}
	m.leaves = false
	m.id, m.addrs = e.ID, e.Addrs
	n.attach(m)
	return m
}

// memberOf returns r's member on n, or nil.
func (n *node) memberOf(r *Roster) *Member {
	for _, m := range n.members {
		if m.roster == r {
			return m
		}
	}
	return nil
}

func (r *Roster) drop(m *Member) {
	m.leaves, m.busy = false, m.node.inFlight > 0
	if m.view != nil {
		m.view.remove(m)
	}
	delete(r.members, m)
	m.node.detach(m)
}

// LeftBusy reports whether RPCs were in flight on the member's node when it left
// its roster: among them are all that have been picked through it.
func (m *Member) LeftBusy() bool {
	mu := m.roster.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	return m.busy
}

// Close takes the roster's members and views away; live leases still land.
// Closing twice changes nothing; a closed roster stays empty.
func (r *Roster) Close() {
	for _, stop := range r.close() {
		stop()
	}
}

// close returns what ends the watch over the RPCs that waited.
func (r *Roster) close() []func() bool {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	stops := r.disperse() // first: nothing is granted anew
	for m := range r.members {
		r.drop(m)
	}
	for _, v := range r.views {
		r.account.Picks += v.picks
	}
	r.members, r.views = nil, nil
	delete(r.ledger.rosters, r)
	return stops
}

// canonicalList returns the endpoints in an order that does not depend on the
// one in which a resolver lists them, and the index that each had.
func canonicalList(eps []Endpoint) ([]Endpoint, []int) {
	at := make([]int, len(eps))
	addrs := make([][]string, len(eps))
	for i, e := range eps {
		at[i], addrs[i] = i, canonical(e.Addrs)
	}
	slices.SortFunc(at, func(i, j int) int {
		return cmp.Or(slices.Compare(addrs[i], addrs[j]), cmp.Compare(eps[i].ID, eps[j].ID))
	})
	sorted := make([]Endpoint, len(eps))
	for k, i := range at {
		sorted[k] = Endpoint{ID: eps[i].ID, Addrs: addrs[i]}
	}
	return sorted, at
}

// canonical returns the addresses sorted, each once, in a slice of its own.
func canonical(addrs []string) []string {
	addrs = slices.Clone(addrs)
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

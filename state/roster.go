package state

import (
	"cmp"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// Endpoint is what an endpoint set is told of an endpoint: the addresses under which
// it is reached, at least one, in any order, and an explicit identity, if it
// has one.
type Identity struct {
	ID    string
	Addrs []string
}

// EndpointSet is one balancer's list of endpoints: it finds each one's endpoint, so that
// the load of an endpoint is known again wherever it is listed. It must be
// closed.
type EndpointSet struct {
	ledger    *Ledger
	name      string
	members   map[*Member]struct{} // guarded by the ledger's mutex, as is what follows
	readySets []*ReadySet
	listed    bool // it has had a list
	guards    Guards
	queue     queue
	account   *counters
}

// Member is one endpoint of an endpoint set. Its endpoint is the endpoint's in the ledger;
// while it is in a ready set, it stands in that ready set's order. The ledger's mutex
// guards it.
type Member struct {
	endpoint *endpoint    // nil once it has left
	readySet *ReadySet    // nil while it is not ready
	handle   order.Handle // in the ready set's order; none while it may not be chosen
	weight   uint32
	limit    int64 // of its endpoint's RPCs in flight
	full     bool  // it is in a ready set, with a weight, and at its limit
	value    any
	leaves   bool // while an update is applied
	busy     bool // RPCs were in flight on its endpoint when it left
	set      *EndpointSet
	id       string
	addrs    []string // sorted, each once

	// Of its slow start.
	slowStartPending bool          // it begins when m is ready
	since            time.Duration // when it began
	slowStartFactor  float64       // of the weight: below 1 while it ramps
	nextStep         time.Duration // when the share is to rise
	place            int32         // among the ready set's waits; none when it does not wait
	last             uint64        // the ready set's picks when it was empty, or chosen, last
	due              uint64        // the pick of the ready set that is its own
}

func (r *EndpointSet) newMember() *Member {
	return &Member{set: r, handle: order.None, place: none, limit: noLimit, slowStartFactor: 1, since: never}
}

// NewRoster adds an endpoint set to the ledger. The name is shown in snapshots.
func (l *Ledger) NewEndpointSet(name string) *EndpointSet {
	r := &EndpointSet{ledger: l, name: name, members: map[*Member]struct{}{}, account: new(counters)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sets[r] = struct{}{}
	return r
}

// Ledger returns the ledger that the endpoint set is on.
func (r *EndpointSet) Ledger() *Ledger { return r.ledger }

// Update changes the list. leave are the members whose endpoints are not listed
// any more, or not as they were; join are the endpoints that are new or changed.
// It returns the member of each of join: one of leave goes on as the member of
// an endpoint that turns out to be its own, the others are gone and in no ready set.
//
// The endpoint of an endpoint is, in this order:
//
//   - the one with its explicit id;
//   - the one with the same addresses;
//   - of those it shares an address with, the most loaded one, except by an
//     address that more than 64 endpoints have: that is a gateway's;
//   - a new one.
//
// An endpoint that has another explicit id is never taken, and no two endpoints of a
// endpoint set get the same endpoint; counts never merge.
func (r *EndpointSet) Update(leave []*Member, join []Identity) []*Member {
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
		m.leaves = m.endpoint != nil && m.set == r
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

// seat gives the endpoint its member on n, or on a new endpoint when n is nil.
func (r *EndpointSet) seat(n *endpoint, e Identity) *Member {
	var m *Member
	known := n != nil
	if known {
		m = n.memberOf(r)
	} else {
		n = r.ledger.newEndpoint()
	}
	if m == nil {
		m = r.newMember()
		r.members[m] = struct{}{}
		if r.listed {
			m.slowStartPending, m.since = !known || n.slowStartPending(), n.since
		}
	}
	m.leaves = false
	m.id, m.addrs = e.ID, e.Addrs
	n.attach(m)
	return m
}

// memberOf returns r's member on n, or nil.
func (n *endpoint) memberOf(r *EndpointSet) *Member {
	for _, m := range n.members {
		if m.set == r {
			return m
		}
	}
	return nil
}

func (r *EndpointSet) drop(m *Member) {
	m.leaves, m.busy = false, m.endpoint.inFlight > 0
	if m.readySet != nil {
		m.readySet.remove(m)
	}
	delete(r.members, m)
	m.endpoint.detach(m)
}

// LeftBusy reports whether RPCs were in flight on the member's endpoint when it left
// its endpoint set: among them are all that have been picked through it.
func (m *Member) LeftBusy() bool {
	mu := m.set.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	return m.busy
}

// Close takes the endpoint set's members and ready sets away; live leases still land.
// Closing twice changes nothing; a closed endpoint set stays empty.
func (r *EndpointSet) Close() {
	for _, stop := range r.close() {
		stop()
	}
}

// close returns what ends the watch over the RPCs that waited.
func (r *EndpointSet) close() []func() bool {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	stops := r.cancelAll() // first: nothing is granted anew
	for m := range r.members {
		r.drop(m)
	}
	for _, v := range r.readySets {
		r.account.Picks += v.picks
	}
	r.members, r.readySets = nil, nil
	delete(r.ledger.sets, r)
	return stops
}

// canonicalList returns the endpoints in an order that does not depend on the
// one in which a resolver lists them, and the index that each had.
func canonicalList(eps []Identity) ([]Identity, []int) {
	at := make([]int, len(eps))
	addrs := make([][]string, len(eps))
	for i, e := range eps {
		at[i], addrs[i] = i, canonical(e.Addrs)
	}
	slices.SortFunc(at, func(i, j int) int {
		return cmp.Or(slices.Compare(addrs[i], addrs[j]), cmp.Compare(eps[i].ID, eps[j].ID))
	})
	sorted := make([]Identity, len(eps))
	for k, i := range at {
		sorted[k] = Identity{ID: eps[i].ID, Addrs: addrs[i]}
	}
	return sorted, at
}

// canonical returns the addresses sorted, each once, in a slice of its own.
func canonical(addrs []string) []string {
	addrs = slices.Clone(addrs)
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

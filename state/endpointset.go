package state

import (
	"encoding/json"
	"slices"
	"time"
	"unique"
)

// EndpointSet is one balancer's list of endpoints. It finds each one's entry in the
// ledger, so that the load of an endpoint is known again wherever it is listed. It
// must be closed.
type EndpointSet struct {
	ledger    *Ledger
	name      string
	labels    labels
	members   map[*Member]struct{} // nil once they have left
	readySets []*ReadySet
	listed    bool // it has had a list
	warm      bool // its first list is not new to its balancer
	guards    Guards
	rebalance Rebalance
	reports   time.Duration // between two reports of a server; 0: they are not used
	entering  int           // calls that tell ready sets' reports of their members
	ramps     []ramp        // of the members that start slowly
	queue     queue
	plan      *plan    // nil while no session has an RPC
	startup   *startup // nil while no member connects that RPCs wait for
	ahead     int      // connections that look ahead
	drained   map[*Member]struct{}
	closed    bool // or about to be: nothing is chosen, nothing joins
	counters  *counters
	warnings  []string
	config    json.RawMessage

	drainsChanged func() // called in a goroutine of its own; nil: nobody asks
}

// NewEndpointSet adds an endpoint set to the ledger. The name is shown in snapshots.
func (l *Ledger) NewEndpointSet(name string) *EndpointSet {
	r := &EndpointSet{
		ledger: l, name: name, labels: unique.Make(Labels{Target: name}),
		members: map[*Member]struct{}{}, counters: &counters{mu: l.mu},
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sets[r] = struct{}{}
	return r
}

// Ledger returns the ledger that the endpoint set is on.
func (r *EndpointSet) Ledger() *Ledger { return r.ledger }

// SetWarnings sets what snapshots show of the endpoint set: what of its configuration
// has no effect.
func (r *EndpointSet) SetWarnings(texts []string) {
	texts = slices.Clone(texts)
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	r.warnings = texts
}

// SetConfig sets what snapshots show as the configuration in use, a JSON value. It must
// not be written to afterwards.
func (r *EndpointSet) SetConfig(js json.RawMessage) {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	r.config = js
}

// Update changes the list. leave are the members whose endpoints are not listed
// any more, or not as they were; join are the endpoints that are new or changed.
// It returns the member of each of join. One of leave goes on as the member of an
// endpoint that turns out to be its own; the others are gone and in no ready set.
//
// The entry of an endpoint is, in this order:
//
//   - the one with its explicit id;
//   - the one with the same addresses;
//   - of those it shares an address with, the most loaded one, except by an
//     address that more than 64 endpoints have: that is a gateway's;
//   - a new one.
//
// An entry that has another explicit id is never taken. No two endpoints of an
// endpoint set get the same entry. Counts never merge.
func (r *EndpointSet) Update(leave []*Member, join []Identity) []*Member {
	join, at := canonicalList(join)
	joined := make([]*Member, len(join))
	for i := range joined {
		joined[i] = r.newMember() // which takes less time here than under the mutex
	}
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	if r.closed {
		return joined // gone already
	}
	if len(r.members) == 0 {
		r.members = make(map[*Member]struct{}, len(join))
	}
	for _, m := range leave {
		m.leaving = m.endpoint != nil && m.set == r
	}
	r.ledger.clock.read()
	known := r.match(join)
	slowly := r.startsSlowly()
	for i, e := range join {
		joined[at[i]] = r.join(known[i], e, joined[at[i]], slowly)
	}
	for _, m := range leave {
		if m.leaving {
			r.removeMember(m)
		}
	}
	r.listed = r.listed || len(join) > 0
	return joined
}

// join gives the endpoint its member on n, or on a new entry when n is nil. It is
// fresh, if it has none. One that starts slowly does so where nobody has listed the endpoint,
// and otherwise goes on with what others have begun.
func (r *EndpointSet) join(n *endpoint, e Identity, fresh *Member, slowly bool) *Member {
	var m *Member
	known := n != nil
	if known {
		m = n.memberOf(r)
	} else {
		n = r.ledger.newEndpoint()
	}
	if m == nil {
		m = fresh
		m.since = r.ledger.clock.now
		r.members[m] = struct{}{}
		if slowly {
			m.slowStart.pending, m.slowStart.start = !known || n.slowStartPending(), n.rampStart
		}
	}
	m.leaving = false
	n.attach(m, e)
	return m
}

// removeMember ends m's membership.
func (r *EndpointSet) removeMember(m *Member) {
	m.leaving = false
	if m.readySet != nil {
		m.leaveReadySet() // before others are given what is reserved on it
	}
	m.stopConnecting()
	m.connection.leave()
	r.counters.keep(m)
	delete(r.members, m)
	m.endpoint.detach(m)
}

// Close takes the endpoint set's members and ready sets away; live leases still land.
// Closing twice changes nothing. A closed endpoint set stays empty.
//
// Picks of other endpoint sets need not wait for all of it: the members leave step by
// step. Nothing is chosen through the endpoint set from the first step on.
func (r *EndpointSet) Close() {
	for _, stop := range r.closeAll() {
		stop()
	}
}

// closeAll takes the ledger's mutex. It returns what ends the watches over the RPCs
// that waited, which may call others.
func (r *EndpointSet) closeAll() []func() bool {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	stops := append(r.cancelAll(), r.startup.stops()...) // first: nothing is granted anew
	if r.plan != nil {
		r.plan.close()
	}
	steps := r.ledger.inSteps()
	for m := range r.members {
		r.removeMember(m)
		steps.did(unitChange)
	}
	for _, v := range r.readySets {
		r.counters.Picks += v.picks
	}
	r.members, r.readySets, r.drainsChanged = nil, nil, nil
	r.counters.free, r.counters.closed = nil, true
	delete(r.ledger.sets, r)
	return stops
}

// Package statetest tests load state: a naive model of what package state
// promises, operation scripts that run against both, and the checks that a test
// binary ends with.
package statetest

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// model is one resource key's load in the most obvious form. Endpoints have one
// address each, endpoint sets a number. Time passes by Tick alone. Its exported
// methods are what a script does.
type model struct {
	now       time.Duration
	endpoints map[string]*endpoint
	sets      map[int]*endpointSet
	arrivals  int
	made      int  // endpoints, ever
	unsure    bool // some weights wait to be compared

	// takeUp has an RPC that was given room on one of the addresses take it up. It
	// returns on which, and what to tell the lease.
	takeUp func(t *waiter, among []string) (string, func(*lease), error)
	err    error  // of it, the first
	served []*rpc // those that have, and whose other waits have not ended yet
	lost   bool   // it is chance what such a one was given besides

	asking *acquisition // that is being made
}

// endpoint lives while an endpoint set lists its address or a lease of it is out.
type endpoint struct {
	addr      string
	number    int // of those made
	leases    []*lease
	picks     int
	highest   int // in flight
	failures  int
	penalties []penalty
	since     time.Duration // when its last slow start began
	members   []*member
	drains    []*drain
	gone      bool
}

type endpointSet struct {
	id        int
	listed    bool
	guards    state.Guards
	reports   time.Duration // 0: not used
	members   map[string]*member
	readySets []*readySet

	waiters   []*waiter // by arrival
	queueSets []int
	told      bool // of queueSets
	woken     bool // since last looked at

	startup      *startup // nil without one
	reservations []*reservation

	queued, retries, penalties, lost int // ever
}

// newModel returns an empty model.
func newModel() *model {
	return &model{endpoints: map[string]*endpoint{}, sets: map[int]*endpointSet{}}
}

// Open adds an endpoint set with some ready sets.
func (m *model) Open(id, readySets int) {
	r := &endpointSet{id: id, members: map[string]*member{}}
	for i := range readySets {
		r.readySets = append(r.readySets, newReadySet(r, i))
	}
	m.sets[id] = r
}

// Close takes an endpoint set away.
func (m *model) Close(id int) {
	defer m.settle()
	r := m.sets[id]
	var leases []*lease
	for len(r.waiters) > 0 {
		t := r.waiters[0]
		t.remove()
		if le := t.giveUp(); le != nil {
			leases = append(leases, le)
		}
	}
	for _, le := range leases {
		m.endLease(le)
	}
	for _, mb := range r.members {
		m.drop(mb)
	}
	delete(m.sets, id)
}

// Add lists an address.
func (m *model) Add(id int, addr string) {
	r, n := m.sets[id], m.endpoints[addr]
	mb := &member{set: r, readySet: none, factor: 1, since: never}
	mb.connection = newConnection(mb)
	slowly := r.listed || r.guards.SlowStart.Window > 0 && m.inUse()
	switch {
	case n == nil:
		m.made++
		n = &endpoint{addr: addr, number: m.made, since: never}
		m.endpoints[addr] = n
		mb.slowStartPending = slowly
	case slowly:
		mb.slowStartPending = slices.ContainsFunc(n.members, func(o *member) bool { return o.slowStartPending })
		mb.since = n.since
	}
	mb.endpoint, mb.drained = n, len(n.drains) > 0
	n.members = append(n.members, mb)
	r.members[addr] = mb
}

// inUse reports whether an endpoint is.
func (m *model) inUse() bool {
	for _, n := range m.endpoints {
		if len(n.leases) > 0 || slices.ContainsFunc(n.members, (*member).eligible) {
			return true
		}
	}
	return false
}

// Listed ends a list of addresses.
func (m *model) Listed(id int) {
	r := m.sets[id]
	r.listed = r.listed || len(r.members) > 0
}

// Drop takes an address off the list.
func (m *model) Drop(id int, addr string) {
	defer m.settle()
	m.drop(m.sets[id].members[addr])
}

func (m *model) drop(mb *member) {
	m.remove(mb)
	m.stopConnecting(mb)
	mb.connection.member = nil
	delete(mb.set.members, mb.endpoint.addr)
	mb.endpoint.members = slices.DeleteFunc(mb.endpoint.members, func(o *member) bool { return o == mb })
	if len(mb.endpoint.members) == 0 {
		mb.endpoint.endDrains()
	}
	m.retire(mb.endpoint)
}

func (m *model) retire(n *endpoint) {
	if len(n.members) == 0 && len(n.leases) == 0 {
		delete(m.endpoints, n.addr)
		n.gone = true
	}
}

// sorted returns the addresses of members, each once.
func sorted(ms []*member) []string {
	addrs := map[string]bool{}
	for _, mb := range ms {
		addrs[mb.endpoint.addr] = true
	}
	return slices.Sorted(maps.Keys(addrs))
}

// never is when a slow start began that never was.
const never = time.Duration(math.MinInt64 / 2)

// none is the ready set of a member that is not ready.
const none = -1

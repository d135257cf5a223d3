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

// Model is one resource key's load in the most obvious form. Endpoints have one
// address each, endpoint sets a number. Time passes by [Model.Tick] alone. It is not
// safe for concurrent use.
type Model struct {
	now      time.Duration
	nodes    map[string]*node
	rosters  map[int]*roster
	arrivals int
	unsure   bool // some weights wait to be compared

	// takeUp has an RPC that was given room on one of the addresses take it up, and
	// returns on which.
	takeUp func(t *ticket, among []string) (string, error)
	err    error // of it, the first
}

// endpoint lives while an endpoint set lists its address or a lease of it is out.
type node struct {
	addr     string
	inFlight int
	picks    int
	fines    []time.Duration // when each unit of penalty ends
	since    time.Duration   // when its last ramp began
	members  []*member
}

type roster struct {
	id      int
	listed  bool
	guards  state.Guards
	members map[string]*member
	views   []*view

	line    []*ticket // that wait, by arrival
	granted []*ticket
	serving []int
	woken   bool // since last looked at

	queued, elsewhere, penalties int // ever
}

type view struct{ picks int }

// NewModel returns an empty model.
func NewModel() *Model {
	return &Model{nodes: map[string]*node{}, rosters: map[int]*roster{}}
}

// Open adds an endpoint set with some ready sets.
func (m *Model) Open(id, views int) {
	r := &roster{id: id, members: map[string]*member{}}
	for range views {
		r.views = append(r.views, &view{})
	}
	m.rosters[id] = r
}

// Close takes an endpoint set away.
func (m *Model) Close(id int) {
	r := m.rosters[id]
	granted := r.granted
	r.line, r.granted = nil, nil
	for _, t := range granted {
		m.settle(t.on)
	}
	for _, mb := range r.members {
		m.drop(mb)
	}
	delete(m.rosters, id)
}

// Add lists an address.
func (m *Model) Add(id int, addr string) {
	r, n := m.rosters[id], m.nodes[addr]
	mb := &member{roster: r, view: none, share: 1, since: never}
	switch {
	case n == nil:
		n = &node{addr: addr, since: never}
		m.nodes[addr] = n
		mb.cold = r.listed
	case r.listed:
		mb.cold = slices.ContainsFunc(n.members, func(o *member) bool { return o.cold })
		mb.since = n.since
	}
	mb.node = n
	n.members = append(n.members, mb)
	r.members[addr] = mb
}

// Listed ends a list of addresses.
func (m *Model) Listed(id int) {
	r := m.rosters[id]
	r.listed = r.listed || len(r.members) > 0
}

// Drop takes an address off the list.
func (m *Model) Drop(id int, addr string) { m.drop(m.rosters[id].members[addr]) }

func (m *Model) drop(mb *member) {
	m.remove(mb)
	delete(mb.roster.members, mb.node.addr)
	mb.node.members = slices.DeleteFunc(mb.node.members, func(o *member) bool { return o == mb })
	m.retire(mb.node)
}

func (m *Model) retire(n *node) {
	if len(n.members) == 0 && n.inFlight == 0 {
		delete(m.nodes, n.addr)
	}
}

// count changes what is in flight on n.
func (m *Model) count(n *node, by int) {
	n.inFlight += by
	for _, mb := range n.members {
		mb.fit()
	}
}

// settle ends a lease.
func (m *Model) settle(n *node) {
	m.count(n, -1)
	m.offer(n)
	m.retire(n)
}

// Release ends a lease on addr.
func (m *Model) Release(addr string) { m.settle(m.nodes[addr]) }

// load is what a score counts.
func (n *node) load() int { return n.inFlight + len(n.fines) }

// sorted returns the addresses of members, each once.
func sorted(ms []*member) []string {
	addrs := map[string]bool{}
	for _, mb := range ms {
		addrs[mb.node.addr] = true
	}
	return slices.Sorted(maps.Keys(addrs))
}

// never is the start of a ramp that never was.
const never = time.Duration(math.MinInt64 / 2)

// none is the ready set of a member that is not ready.
const none = -1

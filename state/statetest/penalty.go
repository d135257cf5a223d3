package statetest

import (
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// Fail ends a lease on addr that an endpoint set has had since start, and that failed.
// The endpoint set may be closed.
func (m *Model) Fail(id int, penalty time.Duration, addr string, start time.Duration) {
	n := m.nodes[addr]
	m.count(n, -1)
	if until := start + penalty; m.now < until && !n.beyond() {
		n.fines = append(n.fines, (until + state.Tick - 1).Truncate(state.Tick))
		if r := m.rosters[id]; r != nil {
			r.penalties++
		}
	}
	m.offer(n)
	m.retire(n)
}

// beyond reports whether n has the highest score, alone, wherever it may be
// chosen.
func (n *node) beyond() bool {
	seats := 0
	for _, mb := range n.members {
		if !mb.seated {
			continue
		}
		seats++
		for _, o := range mb.roster.seated(mb.view) {
			if o != mb && o.score() >= mb.score() {
				return false
			}
		}
	}
	return seats > 0
}

// forgive ends the units whose time is over.
func (m *Model) forgive() {
	for _, n := range m.nodes {
		n.fines = slices.DeleteFunc(n.fines, func(until time.Duration) bool { return until <= m.now })
	}
}

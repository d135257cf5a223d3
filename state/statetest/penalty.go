package statetest

import (
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// Fail ends a lease on addr that an endpoint set has had since start, and that failed.
// The endpoint set may be closed.
func (m *model) Fail(id int, penalty time.Duration, addr string, start time.Duration) {
	n := m.endpoints[addr]
	m.count(n, -1)
	if until := start + penalty; m.now < until && !n.isWorst() {
		n.penalties = append(n.penalties, (until + state.Tick - 1).Truncate(state.Tick))
		if r := m.sets[id]; r != nil {
			r.penalties++
		}
	}
	m.offer(n)
	m.retire(n)
}

// isWorst reports whether n's load over weight is not below what another would have with
// one more, wherever n may be chosen.
func (n *endpoint) isWorst() bool {
	seats := 0
	for _, mb := range n.members {
		if !mb.selectable {
			continue
		}
		seats++
		for _, o := range mb.set.selectable(mb.readySet) {
			if o != mb && float64(o.endpoint.load()+1)/o.class > float64(n.load())/mb.class {
				return false
			}
		}
	}
	return seats > 0
}

// expirePenalties ends the units whose time is over.
func (m *model) expirePenalties() {
	for _, n := range m.endpoints {
		n.penalties = slices.DeleteFunc(n.penalties, func(until time.Duration) bool { return until <= m.now })
	}
}

package statetest

import (
	"maps"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// penalty is what a failure has left.
type penalty struct {
	until time.Duration
	units int
	on    *connection // that the RPC had
}

// Fail ends a lease that failed. Its endpoint set may be closed.
func (m *model) Fail(le *lease) {
	defer m.settle()
	n := le.on
	le.end()
	n.failures++
	if until := le.start + le.set.guards.FailurePenalty; m.now < until && !n.isWorst() {
		n.penalties = append(n.penalties, penalty{(until + state.Tick - 1).Truncate(state.Tick), le.units, le.connection})
		n.updateEligibility()
		le.set.penalties++
	}
	m.offer(n)
	m.retire(n)
}

// isWorst reports whether n's load over weight is not below what another of its like
// would have with one more, wherever n may be chosen, and nobody is busy there.
func (n *endpoint) isWorst() bool {
	seats := 0
	for _, mb := range n.members {
		if !mb.eligible() {
			continue
		}
		seats++
		if mb.set.count(mb.readySet, (*member).busy) > 0 || !mb.full() && mb.set.count(mb.readySet, (*member).full) > 0 {
			return false
		}
		order := mb.order(withRoom)
		if mb.full() {
			order = mb.order(overfull)
		}
		for _, o := range order.free() {
			if o != mb && float64(o.endpoint.load()+1)/order.class(o) > float64(n.load())/order.class(mb) {
				return false
			}
		}
	}
	return seats > 0
}

// expirePenalties ends the penalties whose time is over.
func (m *model) expirePenalties() {
	room := false
	for _, n := range slices.SortedFunc(maps.Values(m.endpoints), func(a, b *endpoint) int { return a.number - b.number }) {
		before := len(n.penalties)
		n.penalties = slices.DeleteFunc(n.penalties, func(p penalty) bool { return p.until <= m.now })
		room = room || len(n.penalties) < before
		n.updateEligibility()
	}
	if room {
		m.offerIn(slices.Collect(maps.Values(m.sets)))
	}
}

package statetest

import (
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// costPeriod is how often, at most, what a lease costs changes.
const costPeriod = 100 * time.Millisecond

// cost is what the context of an RPC says that it costs.
type cost struct{ units int }

// bind has the lease cost what c says. c may be nil.
func (le *lease) bind(c *cost) {
	if c != nil && le.cost == nil {
		le.cost, le.units = c, c.units
	}
}

// takeUp has the lease cost what was set last, if that may change now.
func (le *lease) takeUp(now time.Duration) {
	if le.coolUntil == 0 && le.cost != nil && le.units != le.cost.units {
		le.units, le.coolUntil = le.cost.units, now+costPeriod
	}
}

// SetCost changes what an RPC costs.
func (m *model) SetCost(c *cost, units int) {
	c.units = units
	for _, n := range m.endpoints {
		for _, le := range n.leases {
			if le.cost == c {
				le.takeUp(m.now)
			}
		}
	}
}

// takeUpCosts takes up what could not change before.
func (m *model) takeUpCosts() {
	for _, n := range m.endpoints {
		for _, le := range n.leases {
			if le.coolUntil > 0 && le.coolUntil <= m.now {
				le.coolUntil = 0
				le.takeUp(m.now)
			}
		}
	}
}

// units is what n's leases cost.
func (n *endpoint) units() (sum int) {
	for _, le := range n.leases {
		sum += le.units
	}
	return sum
}

// penalty is what the failures that weigh on n have left.
func (n *endpoint) penalty() (sum int) {
	for _, p := range n.penalties {
		sum += p.units
	}
	return sum
}

// load is what a score counts, rpcs what a cap does.
func (n *endpoint) load() int { return n.units() + n.penalty() }
func (n *endpoint) rpcs() int { return len(n.leases) + len(n.penalties) }

// costs are those that RPCs have: most none, some of the kind that has one unit as well.
var costs = []int{0, 0, 0, 0, 0, 1, 2, 2, 3, 10, 5000, state.MaxCost}

// withCost may give the RPC a cost.
func (s *script) withCost(r *scriptRPC) {
	if units := of(s, costs); units > 0 {
		r.ctx, r.cost = state.WithCost(r.ctx, int64(units)), &cost{units}
	}
}

// setCost changes what an RPC costs, often several times in a row.
func (s *script) setCost(int) error {
	all := s.withCosts()
	if len(all) == 0 {
		return nil
	}
	c := of(s, all)
	for range 1 + s.next(3) {
		units := max(1, of(s, costs))
		c.state.Set(int64(units))
		s.model.SetCost(c.model, units)
	}
	return nil
}

// scriptCost is the cost of an RPC.
type scriptCost struct {
	state *state.Cost
	model *cost
}

// scriptCost returns the RPC's cost, which may be none.
func (r *scriptRPC) scriptCost() scriptCost {
	if r.rpc == nil || r.cost == nil {
		return scriptCost{}
	}
	return scriptCost{state.CostOf(r.ctx), r.cost}
}

// withCosts returns the costs of the RPCs that wait or have a lease.
func (s *script) withCosts() (all []scriptCost) {
	for _, l := range s.live {
		if l.cost.model != nil {
			all = append(all, l.cost)
		}
	}
	for _, r := range s.rpcs {
		if c := r.scriptCost(); c.model != nil {
			all = append(all, c)
		}
	}
	return all
}

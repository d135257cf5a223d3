package state

import "fmt"

// EndpointCounts are a part of an endpoint set's [Counters]: that of the endpoints which
// have an address as their first one.
type EndpointCounts struct {
	Address   string
	Picks     uint64
	Penalties uint64
	First     bool // one of the endpoints was not in what was taken before
}

// maxGone bounds the addresses that an endpoint set remembers of endpoints that have left,
// where nobody takes the counts. The counts of others are told without an address.
const maxGone = 1 << 14

// TakeEndpointCounts returns by how much picks and penalties have grown since it was last
// called, of endpoints where they have, and of those that are new since then. All that it
// ever returns adds up to the endpoint set's counters: those of an endpoint that leaves are
// there the next time. An address may be there several times.
//
// It goes through the members step by step: no pick waits for all of it.
func (r *EndpointSet) TakeEndpointCounts() []EndpointCounts {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	var all []EndpointCounts
	take := func(c EndpointCounts) {
		if c.Picks == 0 && c.Penalties == 0 && !c.First {
			return
		}
		r.counters.taken.add(c)
		all = append(all, c)
	}
	steps := r.ledger.inSteps()
	for m := range r.members {
		take(m.takeCounts())
		steps.did(unitLook)
	}
	for _, c := range r.counters.gone {
		take(c)
	}
	r.counters.gone = nil
	return all
}

// takeCounts returns m's counts since the last call.
func (m *Member) takeCounts() EndpointCounts {
	c := EndpointCounts{m.endpoint.address(), m.picks, m.penalties, !m.counted}
	if m.connection.member == m {
		c.Picks += m.connection.picks
		m.connection.picks = 0
	}
	m.picks, m.penalties, m.counted = 0, 0, true
	return c
}

// add adds what was counted elsewhere, or later.
func (c *EndpointCounts) add(d EndpointCounts) {
	c.Picks += d.Picks
	c.Penalties += d.Penalties
	c.First = c.First || d.First
}

// keep keeps the counts of a member that leaves.
func (k *counters) keep(m *Member) {
	if c := m.takeCounts(); c.Picks+c.Penalties > 0 {
		k.addGone(c)
	}
}

// penalized counts a penalty on n, which the endpoint set may not list any more.
func (k *counters) penalized(n *endpoint) {
	for _, m := range n.members {
		if m.set.counters == k {
			m.penalties++
			return
		}
	}
	k.addGone(EndpointCounts{Address: n.address(), Penalties: 1})
}

func (k *counters) addGone(c EndpointCounts) {
	if _, known := k.gone[c.Address]; !known && len(k.gone) >= maxGone {
		c.Address = ""
	}
	if k.gone == nil {
		k.gone = map[string]EndpointCounts{}
	}
	sum := k.gone[c.Address]
	sum.Address = c.Address
	sum.add(c)
	k.gone[c.Address] = sum
}

// checkCounts asserts that the counts by endpoint add up to the counters.
func (r *EndpointSet) checkCounts() error {
	sum := r.counters.taken
	for m := range r.members {
		sum.Picks += m.picks + m.connection.picks
		sum.Penalties += m.penalties
	}
	for _, c := range r.counters.gone {
		sum.add(c)
	}
	if all := r.countersLocked(); sum.Picks != all.Picks || sum.Penalties != all.Penalties {
		return fmt.Errorf("endpoint set %q: %d picks and %d penalties by endpoint, %d and %d in all", r.name, sum.Picks, sum.Penalties, all.Picks, all.Penalties)
	}
	return nil
}

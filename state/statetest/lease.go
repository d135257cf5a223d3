package statetest

import (
	"slices"
	"time"
)

// lease is one RPC in flight on an endpoint.
type lease struct {
	set        *endpointSet
	on         *endpoint
	connection *connection // nil while it is reserved on one that connects
	start      time.Duration
	startup    *startup // of the endpoint set when it began

	cost      *cost // nil: none
	units     int   // that it counts
	coolUntil time.Duration
}

func (m *model) newLease(r *endpointSet, n *endpoint) *lease {
	le := &lease{set: r, on: n, start: m.now, startup: r.startup, units: 1}
	if le.startup != nil {
		le.startup.inFlight++
	}
	n.picks++
	n.leases = append(n.leases, le)
	n.highest = max(n.highest, len(n.leases))
	n.updateEligibility()
	return le
}

// connect gives the lease a connection.
func (le *lease) connect(c *connection) {
	le.connection = c
	c.count(1)
}

// end takes the lease off its endpoint.
func (le *lease) end() {
	n := le.on
	n.leases = slices.DeleteFunc(n.leases, func(o *lease) bool { return o == le })
	if le.startup != nil {
		le.startup.inFlight--
	}
	n.updateEligibility()
	if le.connection != nil {
		le.connection.count(-1)
	}
}

// Release ends a lease.
func (m *model) Release(le *lease) {
	defer m.settle()
	m.endLease(le)
}

func (m *model) endLease(le *lease) {
	le.end()
	m.offer(le.on)
	m.retire(le.on)
}

// oldest returns the age of n's oldest lease, 0 without one.
func (n *endpoint) oldest(now time.Duration) time.Duration {
	age := time.Duration(0)
	for _, le := range n.leases {
		age = max(age, now-le.start)
	}
	return age
}

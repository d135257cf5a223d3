package leastconnbalancer

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/leastconn/grpc-leastconn/state"
)

// child is an endpoint of the last list, with its pick_first policy.
type child struct {
	balancer.ClientConn // embedded to intercept UpdateState and NewSubConn
	parent              *leastConn
	policy              pickFirst

	// Only used in calls of gRPC on the balancer.
	update uint64 // number of the last list it was in
	dirty  bool   // the policy has not been told the endpoint as it is

	// Changed in calls of gRPC on the balancer, with the parent's mu held. So
	// either of the two is enough to read it.
	endpoint endpoint

	// Guarded by the parent's mu.
	member       *state.Member
	level        *level
	appliedLimit uint32             // of RPCs in flight; 0: none
	drained      bool               // by Drain; picks may know it before
	state        connectivity.State // SHUTDOWN once it has left
	fresh        bool               // it connects for the first time, or since it was READY, and has not failed
	picker       balancer.Picker
	reconnects   reconnects
	shown        state.Connectivity // in snapshots
	current      *connection        // the last that became READY, while it is; the picker's, once the child is READY
}

// newChild builds the pick_first policy of an endpoint.
func (b *leastConn) newChild(m *state.Member) *child {
	c := &child{ClientConn: b.cc, parent: b, member: m, state: connectivity.Connecting, fresh: true}
	c.showStateLocked() // nobody else knows the child yet
	c.policy.balancer = b.builder.Build(c, b.opts)
	return c
}

// eligible reports whether RPCs may be sent to the endpoint when it is READY: it
// does not drain.
func (c *child) eligible() bool { return c.endpoint.facts.weight > 0 && !c.drained }

// UpdateState takes up the policy's new state. It is called with locks of the
// policy held.
func (c *child) UpdateState(s balancer.State) {
	b := c.parent
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.state == connectivity.Shutdown {
		return
	}
	c.reconnects.stop()
	if s.ConnectivityState == connectivity.Idle {
		s = c.reconnectLocked(s)
	}
	b.setStateLocked(c, s.ConnectivityState, s.Picker)
	b.publishLocked()
}

// setStateLocked gives c a state, in its level and in the level's ready set.
func (b *leastConn) setStateLocked(c *child, s connectivity.State, picker balancer.Picker) {
	was := c.state
	c.level.remove(c)
	c.updateFresh(s)
	c.state, c.picker = s, picker
	if s != connectivity.Shutdown {
		c.level.add(c)
		c.showStateLocked()
	}
	c.level.updateFailover()
	switch {
	case s == connectivity.Ready:
		c.setReadyLocked()
	case was == connectivity.Ready:
		c.level.readySet.Remove(c.member)
	}
	if !c.fresh {
		c.level.connectedLocked(c)
	}
	b.levels.updateStartupLocked(c.level)
	if s == connectivity.TransientFailure {
		c.member.StartSlowly()
		if c.eligible() {
			b.outage.lastFailed = c
		}
	}
}

// setReadyLocked puts c into its level's ready set, with its weight and what picks get.
// While it is READY, its policy gives the one connection to all RPCs, so they need not
// ask it.
func (c *child) setReadyLocked() {
	var value any = c.picker
	if c.current != nil {
		value = c.current.SubConn
	}
	c.level.readySet.Set(c.member, c.endpoint.facts.weight, value)
}

// detachLocked lets go of all that leads to the ledger: the child is listed no
// more.
func (c *child) detachLocked() {
	c.state = connectivity.Shutdown
	c.reconnects.stop()
	c.member, c.level, c.picker, c.current = nil, nil, nil, nil
}

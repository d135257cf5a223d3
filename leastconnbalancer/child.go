package leastconnbalancer

import (
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/state"
)

// child is an endpoint's pick_first policy and what the balancer knows of it.
type child struct {
	balancer.ClientConn // embedded to intercept UpdateState
	parent              *leastConn

	// Only used in calls of gRPC on the balancer.
	endpoint resolver.Endpoint
	key      string // in the balancer's children
	update   uint64 // number of the last list it was in
	stale    bool   // the policy has not seen the endpoint as it is

	// Guarded by the parent's mu.
	member *state.Member
	level  *level
	weight uint32
	limit  *uint32            // of RPCs in flight; nil: the configuration's
	capped uint32             // what the member has; 0: no cap
	state  connectivity.State // SHUTDOWN once it has left
	picker balancer.Picker

	// calls orders the calls into policy; it comes before the policy's own locks
	// and the parent's mu.
	calls  sync.Mutex
	policy balancer.Balancer
	closed bool
}

// UpdateState takes up the policy's new state. It is called with locks of the
// policy held.
func (c *child) UpdateState(s balancer.State) {
	b := c.parent
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.state == connectivity.Shutdown {
		return
	}
	b.setState(c, s.ConnectivityState, s.Picker)
	if !b.held {
		b.publishLocked()
	}
	if s.ConnectivityState == connectivity.Idle {
		go c.exitIdle()
	}
}

// setState moves c to a state, in its level and in the level's ready set. Caller
// holds mu.
func (b *leastConn) setState(c *child, s connectivity.State, picker balancer.Picker) {
	was := c.state
	c.level.remove(c)
	c.state, c.picker = s, picker
	if s != connectivity.Shutdown {
		c.level.add(c)
	}
	c.level.settle()
	switch {
	case s == connectivity.Ready:
		c.level.readySet.Set(c.member, c.weight, picker)
	case was == connectivity.Ready:
		c.level.readySet.Remove(c.member)
	}
	if s == connectivity.TransientFailure {
		c.member.StartSlowly()
		if c.weight > 0 {
			b.failed = c
		}
	}
}

// detach lets go of all that leads to the ledger: the child is listed no more.
// Caller holds the parent's mu.
func (c *child) detach() {
	c.state = connectivity.Shutdown
	c.member, c.level, c.picker = nil, nil, nil
}

func (c *child) updateClientConnState() error {
	c.calls.Lock()
	defer c.calls.Unlock()
	return c.policy.UpdateClientConnState(balancer.ClientConnState{
		ResolverState: resolver.State{
			Endpoints:  []resolver.Endpoint{c.endpoint},
			Attributes: c.parent.attrs,
		},
	})
}

func (c *child) resolverError(err error) {
	c.calls.Lock()
	defer c.calls.Unlock()
	c.policy.ResolverError(err)
}

// exitIdle also runs on a goroutine of its own, which may come after close.
func (c *child) exitIdle() {
	c.calls.Lock()
	defer c.calls.Unlock()
	if !c.closed {
		c.policy.ExitIdle()
	}
}

func (c *child) close() {
	c.calls.Lock()
	defer c.calls.Unlock()
	if !c.closed {
		c.closed = true
		c.policy.Close()
	}
}

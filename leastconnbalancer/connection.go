package leastconnbalancer

import (
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/picker"
)

// connection is a SubConn of a child's policy. When gRPC shuts a SubConn down, an
// RPC that has picked it and asks for its stream after that hangs for as long as
// other streams keep the connection. So the shutdown, which ends the SubConn for
// the policy at once, waits until the RPCs that have picked it are done.
type connection struct {
	balancer.SubConn // embedded to intercept Shutdown and GetOrBuildProducer
	child            *child
	picked           *picker.Connection
	listener         func(balancer.SubConnState) // the policy's

	// Guarded by the balancer's mu.
	state      connectivity.State
	readySince time.Time
	producers  []func() // end those of this state
	closing    bool     // the policy has shut it down
	closed     bool     // so has the balancer
}

// NewSubConn makes a connection. It is called with locks of the policy held.
func (c *child) NewSubConn(addrs []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	cn := &connection{child: c, listener: opts.StateListener, state: connectivity.Idle}
	opts.StateListener = cn.updateState
	//lint:ignore SA1019 pick_first calls it, with one address
	sc, err := c.ClientConn.NewSubConn(addrs, opts)
	if err != nil {
		return nil, err
	}
	cn.SubConn = sc
	cn.picked = picker.NewConnection(cn, sc, cn.shutdown)
	return cn.picked, nil
}

// updateState passes a state on to the policy until that has shut the connection
// down. From then on, the RPCs that have picked it need it as long as it is READY.
func (cn *connection) updateState(s balancer.SubConnState) {
	b := cn.child.parent
	b.mu.Lock()
	was := cn.state
	cn.state, cn.producers = s.ConnectivityState, nil
	closing := cn.closing
	if !closing {
		cn.child.noteConnectionLocked(cn, was)
	}
	b.mu.Unlock()
	switch {
	case !closing:
		cn.listener(s)
	case s.ConnectivityState != connectivity.Ready:
		cn.shutdown()
	}
}

// noteConnectionLocked takes up what has become of a connection.
func (c *child) noteConnectionLocked(cn *connection, was connectivity.State) {
	switch {
	case cn.state == connectivity.Ready:
		c.current, cn.readySince = cn, time.Now()
		return
	case c.current == cn:
		c.current = nil
	}
	c.endedLocked(cn, was)
}

// Shutdown ends the connection for the policy, which holds its locks. First of
// all no RPC is sent there any more; then nobody hears of it.
func (cn *connection) Shutdown() {
	c := cn.child
	b := c.parent
	b.mu.Lock()
	again := cn.closing
	cn.closing = true
	ready := cn.state == connectivity.Ready
	if c.current == cn {
		c.current = nil
		if c.level != nil && c.state == connectivity.Ready {
			c.level.readySet.Remove(c.member)
		}
	}
	b.mu.Unlock()
	switch {
	case again:
	case cn.picked.Close() || !ready:
		cn.shutdown()
	default:
		go cn.endListeners() // a listener is called with locks held that this takes
	}
}

// shutdown shuts the SubConn down, once.
func (cn *connection) shutdown() {
	mu := &cn.child.parent.mu
	mu.Lock()
	again := cn.closed
	cn.closed = true
	mu.Unlock()
	if !again {
		cn.SubConn.Shutdown()
	}
}

// endListeners ends the health stream and the producers, as the shutdown would.
func (cn *connection) endListeners() {
	mu := &cn.child.parent.mu
	mu.Lock()
	producers := cn.producers
	cn.producers = nil
	mu.Unlock()
	cn.RegisterHealthListener(nil)
	for _, end := range producers {
		end()
	}
}

// GetOrBuildProducer notes how to end the producer.
func (cn *connection) GetOrBuildProducer(pb balancer.ProducerBuilder) (balancer.Producer, func()) {
	p, end := cn.SubConn.GetOrBuildProducer(pb)
	mu := &cn.child.parent.mu
	mu.Lock()
	defer mu.Unlock()
	cn.producers = append(cn.producers, end)
	return p, end
}

package leastconnbalancer

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/settings"
	"github.com/leastconn/grpc-leastconn/picker"
)

// connection is a SubConn of a child's policy. When gRPC shuts a SubConn down, an
// RPC that has picked it and asks for its stream after that hangs for as long as
// other streams keep the connection. So the shutdown, which ends the SubConn for
// the policy at once, waits until the RPCs that have picked it are done.
type connection struct {
	balancer.SubConn // embedded to intercept its methods
	child            *child
	listener         func(balancer.SubConnState) // the policy's
	heard            atomic.Pointer[transport]   // the last that has begun; nil where none is heard of
	reports          connectionReports

	// Guarded by the balancer's mu.
	state      connectivity.State
	readySince time.Time
	transport  *transport    // the last; nil before it was READY
	others     *otherStreams // of this state
	closing    bool          // the policy has shut it down
	closed     bool          // so has the balancer
}

// NewSubConn makes a connection. It is called with locks of the policy held.
func (c *child) NewSubConn(addrs []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	cn := &connection{child: c, listener: opts.StateListener, state: connectivity.Idle, others: newOtherStreams()}
	opts.StateListener = cn.updateState
	if bundle := settings.Bundle(c.parent.opts, cn); bundle != nil {
		//lint:ignore SA1019 the only way to hear what a server allows on a connection; see Credentials
		opts.CredsBundle = bundle
	}
	addrs = settings.Addresses(c.parent.opts, addrs, cn)
	//lint:ignore SA1019 pick_first calls it, with one address
	sc, err := c.ClientConn.NewSubConn(addrs, opts)
	if err != nil {
		return nil, err
	}
	cn.SubConn = sc
	return picker.Intercept(cn, sc), nil
}

// updateState passes a state on to the policy until that has shut the connection
// down. From then on, the RPCs that have picked it need it as long as it is READY.
func (cn *connection) updateState(s balancer.SubConnState) {
	b := cn.child.parent
	b.mu.Lock()
	was := cn.state
	if was == connectivity.Ready && cn.transport != nil {
		cn.transport.counted().End() // also when READY follows READY: that is another one
	}
	cn.state, cn.others = s.ConnectivityState, newOtherStreams()
	closing := cn.closing
	if !closing {
		cn.child.noteConnectionLocked(cn, was)
		cn.child.noteErrorLocked(s)
	}
	b.mu.Unlock()
	cn.updateReports()
	switch {
	case !closing:
		cn.listener(s)
	case s.ConnectivityState != connectivity.Ready:
		cn.shutdown()
	}
}

// Connected implements settings.Listener.
func (cn *connection) Connected() settings.Transport {
	t := newTransport(cn)
	cn.heard.Store(t)
	return t
}

// connectLocked makes the transport that is READY the child's. It is the last that was
// heard of: gRPC begins another one when it has told that this one is not READY.
func (cn *connection) connectLocked() {
	b := cn.child.parent
	cn.transport = cn.heard.Load()
	if cn.transport == nil {
		cn.transport = newTransport(cn)
	}
	if cn.transport.connect(cn.child.member) {
		b.startWakerLocked()
	}
}

// noteConnectionLocked takes up what has become of a connection.
func (c *child) noteConnectionLocked(cn *connection, was connectivity.State) {
	switch {
	case c.state == connectivity.Shutdown:
		return
	case cn.state == connectivity.Ready:
		c.current, cn.readySince = cn, time.Now()
		cn.connectLocked()
		return
	case c.current == cn:
		c.current = nil
	}
	c.endedLocked(cn, was)
}

// moveConnectionLocked gives the child's connection to its member, which is another one
// than before.
func (c *child) moveConnectionLocked() {
	if c.current != nil {
		c.current.transport.moveTo(c.member)
	}
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
	}
	transport := cn.transport
	b.mu.Unlock()
	cn.updateReports()
	switch {
	case again:
	case !ready || transport == nil || transport.counted().Close(cn.shutdown):
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

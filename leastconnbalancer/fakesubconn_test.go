package leastconnbalancer_test

import (
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// fakeSubConn is a connection of a fakeConn. One that succeeds goes from Connect
// to CONNECTING to READY, each when its channel is driven, and stays there until
// Shutdown.
type fakeSubConn struct {
	balancer.SubConn // nil; embedded because the interface demands it

	conn             *fakeConn
	addr             string
	listener, health func(balancer.SubConnState)

	// Guarded by conn.mu.
	state     connectivity.State
	producers []*fakeProducer
}

// fakeEvent is a state change on its way to a listener.
type fakeEvent struct {
	sc       *fakeSubConn
	state    connectivity.State
	listener func(balancer.SubConnState)
}

func (s *fakeSubConn) Connect() {
	if !s.conn.succeeds {
		return
	}
	s.conn.mu.Lock()
	idle := s.state == connectivity.Idle
	if idle {
		s.state = connectivity.Connecting
	}
	s.conn.mu.Unlock()
	if idle {
		s.conn.enqueue(fakeEvent{sc: s, state: connectivity.Connecting, listener: s.listener})
	}
}

// RegisterHealthListener reports READY, as gRPC does for a channel without health
// checks.
func (s *fakeSubConn) RegisterHealthListener(listener func(balancer.SubConnState)) {
	s.health = listener
	if listener != nil && s.conn.succeeds {
		s.conn.enqueue(fakeEvent{sc: s, state: connectivity.Ready, listener: listener})
	}
}

func (s *fakeSubConn) Shutdown() {
	s.conn.mu.Lock()
	before := s.state
	s.state = connectivity.Shutdown
	if before == connectivity.Ready {
		s.conn.ready--
	}
	s.conn.mu.Unlock()
	if before != connectivity.Shutdown && s.conn.succeeds {
		s.conn.enqueue(fakeEvent{sc: s, state: connectivity.Shutdown, listener: s.listener})
	}
}

// deliver hands e to its listener unless the SubConn was shut down meanwhile;
// CONNECTING leads on to READY.
func (s *fakeSubConn) deliver(e fakeEvent) {
	s.conn.mu.Lock()
	late := s.state == connectivity.Shutdown && e.state != connectivity.Shutdown
	if !late && e.state == connectivity.Ready && s.state == connectivity.Connecting {
		s.state = connectivity.Ready
		s.conn.ready++
	}
	s.conn.mu.Unlock()
	if late {
		return
	}
	e.listener(balancer.SubConnState{ConnectivityState: e.state})
	if e.state == connectivity.Connecting {
		s.conn.enqueue(fakeEvent{sc: s, state: connectivity.Ready, listener: s.listener})
	}
}

func (c *fakeConn) enqueue(e fakeEvent) {
	c.mu.Lock()
	c.events = append(c.events, e)
	c.mu.Unlock()
	c.wakeUp()
}

func (c *fakeConn) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// drive delivers events, and those that they lead to, until none is left.
func (c *fakeConn) drive() {
	for {
		c.mu.Lock()
		batch := c.events
		c.events = nil
		c.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, e := range batch {
			e.sc.deliver(e)
		}
	}
}

// awaitReady drives until n SubConns are READY, nothing is left to deliver and
// the balancer has published READY. It waits for goroutines of the balancer, such
// as those that leave IDLE.
func (c *fakeConn) awaitReady(n int) {
	c.tb.Helper()
	for {
		c.drive()
		c.mu.Lock()
		ready, published, idle := c.ready, c.state.ConnectivityState, len(c.events) == 0
		c.mu.Unlock()
		if ready == n && published == connectivity.Ready && idle {
			return
		}
		select {
		case <-c.wake:
		case <-time.After(patience):
			c.tb.Fatalf("%d of %d SubConns are READY and the balancer is %v, and nothing more happens", ready, n, published)
		}
	}
}

// close closes the balancer and drops what is still to be delivered: a closed
// balancer is told nothing.
func (c *fakeConn) close() {
	c.balancer.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = nil
}

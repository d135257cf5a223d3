package leastconnbalancer_test

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// benchSubConn goes from Connect to CONNECTING to READY, each when its channel is driven, and stays there until Shutdown.
type benchSubConn struct {
	balancer.SubConn // nil; embedded because the interface demands it

	conn     *benchClientConn
	addr     string
	listener func(balancer.SubConnState)

	state connectivity.State // guarded by conn.mu
}

func (s *benchSubConn) Connect() {
	s.conn.mu.Lock()
	idle := s.state == connectivity.Idle
	if idle {
		s.state = connectivity.Connecting
	}
	s.conn.mu.Unlock()
	if idle {
		s.conn.enqueue(benchEvent{sc: s, state: connectivity.Connecting, listener: s.listener})
	}
}

// RegisterHealthListener reports READY, as gRPC does for a channel without health checks.
func (s *benchSubConn) RegisterHealthListener(listener func(balancer.SubConnState)) {
	if listener != nil {
		s.conn.enqueue(benchEvent{sc: s, state: connectivity.Ready, listener: listener})
	}
}

func (s *benchSubConn) Shutdown() {
	s.conn.mu.Lock()
	before := s.state
	s.state = connectivity.Shutdown
	if before == connectivity.Ready {
		s.conn.ready--
	}
	s.conn.mu.Unlock()
	if before != connectivity.Shutdown {
		s.conn.enqueue(benchEvent{sc: s, state: connectivity.Shutdown, listener: s.listener})
	}
}

// deliver hands e to its listener unless the SubConn was shut down meanwhile; CONNECTING leads on to READY.
func (s *benchSubConn) deliver(e benchEvent) {
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
		s.conn.enqueue(benchEvent{sc: s, state: connectivity.Ready, listener: s.listener})
	}
}

package leastconnbalancer

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// showStateLocked has snapshots show the child's state, and since when it is so.
func (c *child) showStateLocked() {
	if s := c.state.String(); c.shown.State != s {
		c.shown.State, c.shown.Since = s, time.Now()
	}
	c.member.SetConnectivity(c.shown)
}

// noteErrorLocked has snapshots show why a connection of the child has failed. It stays
// when that is over.
func (c *child) noteErrorLocked(s balancer.SubConnState) {
	if s.ConnectivityState == connectivity.TransientFailure && s.ConnectionError != nil {
		c.failedLocked(s.ConnectionError)
	}
}

// failedLocked is noteErrorLocked for any reason.
func (c *child) failedLocked(err error) {
	if c.state == connectivity.Shutdown {
		return
	}
	c.shown.Failed(err)
	c.member.SetConnectivity(c.shown)
}

// errEjected is for a connection that is not healthy, and nobody says why.
var errEjected = errors.New("not healthy, and no health check says so: ejected, as by outlier detection")

// noteHealth notes why a connection that is up is not healthy.
func (cn *connection) noteHealth(s balancer.SubConnState) {
	if s.ConnectivityState != connectivity.TransientFailure {
		return
	}
	err := errEjected
	if s.ConnectionError != nil {
		err = fmt.Errorf("health check: %w", s.ConnectionError)
	}
	b := cn.child.parent
	b.mu.Lock()
	defer b.mu.Unlock()
	if !cn.closing {
		cn.child.failedLocked(err)
	}
}

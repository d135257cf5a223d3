package leastconnbalancer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
)

// minLifetime is how long a connection lives that is worth another one at once.
const minLifetime = time.Second

// reconnects paces the connections of an endpoint that accepts them and hangs up.
// gRPC paces only those that fail before they are READY.
type reconnects struct {
	short int         // READY connections in a row that did not live
	pause *time.Timer // until the next one; nil without one
}

// ended notes how long a connection was READY, and whether an RPC has succeeded
// there: a server that hangs up after each RPC is no use if it is not dialled.
func (r *reconnects) ended(lived time.Duration, served bool) {
	if lived < minLifetime && !served {
		r.short++
	} else {
		r.short = 0
	}
}

// delay returns the time until the next connection: none after the first short one,
// and then gRPC's default backoff. random is in [0, 1).
func (r *reconnects) delay(random float64) time.Duration {
	if r.short < 2 {
		return 0
	}
	c := backoff.DefaultConfig
	d := float64(c.BaseDelay)
	for i := 2; i < r.short && d < float64(c.MaxDelay); i++ {
		d *= c.Multiplier
	}
	return time.Duration(min(d, float64(c.MaxDelay)) * (1 + c.Jitter*(2*random-1)))
}

// stop ends the pause.
func (r *reconnects) stop() {
	if r.pause != nil {
		r.pause.Stop()
		r.pause = nil
	}
}

// reconnectLocked has the child connect again, which is idle: at once or, when its
// connections do not last, after a pause. It returns what the child counts as till
// then.
func (c *child) reconnectLocked(idle balancer.State) balancer.State {
	d := c.reconnects.delay(rand.Float64())
	if d == 0 {
		go c.policy.exitIdle()
		return idle
	}
	c.pauseLocked(d)
	err := fmt.Errorf("%s: endpoint %s: %d connections in a row ended within %v; the next one comes after %v",
		Name, c.endpoint.Addresses[0].Addr, c.reconnects.short, minLifetime, d.Round(time.Millisecond))
	c.failedLocked(err)
	return balancer.State{ConnectivityState: connectivity.TransientFailure, Picker: base.NewErrPicker(err)}
}

// pauseLocked has the child connect after d.
func (c *child) pauseLocked(d time.Duration) {
	b := c.parent
	var pause *time.Timer
	pause = time.AfterFunc(d, func() {
		b.mu.Lock()
		over := c.reconnects.pause == pause
		if over {
			c.reconnects.pause = nil
		}
		b.mu.Unlock()
		if over {
			c.policy.exitIdle()
		}
	})
	c.reconnects.pause = pause
}

// exitIdle connects the child if it is idle and does not pause.
func (c *child) exitIdle() {
	b := c.parent
	b.mu.Lock()
	paused := c.reconnects.pause != nil
	b.mu.Unlock()
	if !paused {
		c.policy.exitIdle()
	}
}

// endedLocked notes the end of a connection. One that gRPC lost before it reported
// it as READY goes from CONNECTING to IDLE.
func (c *child) endedLocked(cn *connection, was connectivity.State) {
	switch {
	case was == connectivity.Ready:
		c.reconnects.ended(time.Since(cn.readySince), cn.transport.counted().Succeeded())
	case was == connectivity.Connecting && cn.state == connectivity.Idle:
		c.reconnects.ended(0, false)
	}
}

// readdressLocked lets the child connect at once when its endpoint has other
// addresses now: what was at the old ones says nothing of them.
func (c *child) readdressLocked(e endpoint) {
	if slices.Equal(c.endpoint.identity.Addrs, e.identity.Addrs) {
		return
	}
	c.reconnects.short = 0
	if c.reconnects.pause != nil {
		c.reconnects.pause.Reset(0)
	}
}

package leastconnbalancer_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
)

// benchClientConn is a channel on which every connection succeeds at once. What it has to tell the balancer waits in a
// queue until drive delivers it, one event at a time as gRPC's serializer does, since a balancer calls Connect with its
// locks held.
type benchClientConn struct {
	balancer.ClientConn // nil; embedded because the interface demands it

	// eager delivers the queue at each NewSubConn too, that is in the middle of UpdateClientConnState, where
	// endpointsharding holds its publishing back. gRPC never does that; it spares the setup of a large peer the
	// quadratic bring-up, and is for setup alone.
	eager bool

	mu     sync.Mutex // a leaf: nothing is called with it held
	events []benchEvent
	ready  int // SubConns that are READY
	state  balancer.State

	wake chan struct{} // has room for one; filled by whatever may end the wait in awaitReady
}

// benchEvent is a state change on its way to a listener.
type benchEvent struct {
	sc       *benchSubConn
	state    connectivity.State
	listener func(balancer.SubConnState)
}

// benchMetrics drops all measurements, like a channel without a stats handler. One value for all, so that asking for it
// allocates nothing.
var benchMetrics estats.MetricsRecorder = estats.UnimplementedMetricsRecorder{}

func newBenchClientConn() *benchClientConn {
	return &benchClientConn{wake: make(chan struct{}, 1)}
}

func (c *benchClientConn) NewSubConn(addrs []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if len(addrs) != 1 || opts.StateListener == nil {
		return nil, errors.New("want one address and a StateListener")
	}
	if c.eager {
		c.drive()
	}
	return &benchSubConn{conn: c, addr: addrs[0].Addr, listener: opts.StateListener, state: connectivity.Idle}, nil
}

func (c *benchClientConn) UpdateState(s balancer.State) {
	c.mu.Lock()
	c.state = s
	c.mu.Unlock()
	c.wakeUp()
}

func (c *benchClientConn) RemoveSubConn(sc balancer.SubConn)                    { sc.Shutdown() }
func (c *benchClientConn) UpdateAddresses(balancer.SubConn, []resolver.Address) {}
func (c *benchClientConn) ResolveNow(resolver.ResolveNowOptions)                {}
func (c *benchClientConn) Target() string                                       { return benchTarget.String() }
func (c *benchClientConn) MetricsRecorder() estats.MetricsRecorder              { return benchMetrics }

func (c *benchClientConn) enqueue(e benchEvent) {
	c.mu.Lock()
	c.events = append(c.events, e)
	c.mu.Unlock()
	c.wakeUp()
}

func (c *benchClientConn) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// drive delivers events, and those that they lead to, until none is left.
func (c *benchClientConn) drive() {
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

// awaitReady drives until n SubConns are READY, nothing is left to deliver and the balancer has published READY. It
// waits for goroutines of the balancer, such as those that leave IDLE.
func (c *benchClientConn) awaitReady(tb testing.TB, n int) {
	tb.Helper()
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
		case <-time.After(10 * time.Second):
			tb.Fatalf("%d of %d SubConns are READY and the balancer is %v, and nothing more happens", ready, n, published)
		}
	}
}

// picker returns the picker published last.
func (c *benchClientConn) picker() balancer.Picker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Picker
}

// silence drops what is still to be delivered: a closed balancer is told nothing.
func (c *benchClientConn) silence() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = nil
}

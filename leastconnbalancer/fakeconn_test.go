package leastconnbalancer_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

const (
	idle       = connectivity.Idle
	connecting = connectivity.Connecting
	ready      = connectivity.Ready
	failure    = connectivity.TransientFailure
)

// fakeConn is a channel without a network. Either the test says what becomes of
// connections, for which it is one goroutine in a bubble's time, or each of them
// succeeds when the channel is driven.
type fakeConn struct {
	balancer.ClientConn // nil; embedded because the interface demands it

	tb       testing.TB
	balancer balancer.Balancer
	config   serviceconfig.LoadBalancingConfig
	target   resolver.Target
	recorder estats.MetricsRecorder

	mu       sync.Mutex // a leaf: nothing is called with it held
	subConns []*fakeSubConn
	updates  int
	state    balancer.State

	// succeeds lets each connection succeed. What the channel has to tell the
	// balancer waits in a queue until drive delivers it, one event at a time as
	// gRPC's serializer does, since a balancer calls Connect with its locks held.
	succeeds bool
	// eager delivers the queue at each NewSubConn too, that is in the middle of
	// UpdateClientConnState, where endpointsharding holds its publishing back. gRPC
	// never does that; it spares the setup of a large peer the quadratic bring-up,
	// and is for setup alone.
	eager  bool
	events []fakeEvent
	ready  int           // SubConns that are READY
	wake   chan struct{} // has room for one; filled by whatever may end the wait in awaitReady
}

// noMetrics drops all measurements, like a channel without a stats handler. One
// value for all, so that asking for it allocates nothing.
var noMetrics estats.MetricsRecorder = estats.UnimplementedMetricsRecorder{}

// newFakeConn is a channel that nobody has built a policy in.
func newFakeConn(tb testing.TB) *fakeConn {
	return &fakeConn{
		tb: tb, recorder: noMetrics, wake: make(chan struct{}, 1),
		target: resolver.Target{URL: url.URL{Scheme: "fake", Path: "/" + tb.Name()}},
	}
}

func (c *fakeConn) build(builder balancer.Builder) {
	c.balancer = builder.Build(c, balancer.BuildOptions{Target: c.target, Authority: "service"})
}

// inFakeTime runs a test whose clock stands still until all wait.
func inFakeTime(t *testing.T, name string, test func(*testing.T, *fakeConn)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newFakeConn(t)
			c.build(balancer.Get(leastconnbalancer.Name))
			t.Cleanup(c.balancer.Close)
			test(t, c)
		})
	})
}

// passes lets the time go by.
func passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// list gives the policy one-letter endpoints by level, the highest first; those
// in capitals drain. The config may be "", which is none.
func (c *fakeConn) list(config string, levels ...string) {
	c.tb.Helper()
	c.config = nil
	if config != "" {
		cfg, err := parse(config)
		require.NoError(c.tb, err)
		c.config = &cfg
	}
	var eps []resolver.Endpoint
	for level, names := range levels {
		for _, name := range names {
			addr := strings.ToLower(string(name))
			ep := lcresolver.SetPriority(resolver.Endpoint{Addresses: []resolver.Address{{Addr: addr}}}, uint32(level))
			if addr != string(name) {
				ep = lcresolver.SetWeight(ep, 0)
			}
			eps = append(eps, ep)
		}
	}
	require.NoError(c.tb, c.update(eps))
	synctest.Wait()
}

func (c *fakeConn) update(endpoints []resolver.Endpoint) error {
	return c.balancer.UpdateClientConnState(balancer.ClientConnState{
		ResolverState:  resolver.State{Endpoints: endpoints},
		BalancerConfig: c.config,
	})
}

// open returns the endpoint's connections that are not shut down.
func (c *fakeConn) open(addr string) []*fakeSubConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.subConns), func(sc *fakeSubConn) bool {
		return sc.addr != addr || sc.state == connectivity.Shutdown
	})
}

// report tells the policy what becomes of the endpoint's newest connection.
func (c *fakeConn) report(addr string, states ...connectivity.State) {
	c.tb.Helper()
	for _, s := range states {
		open := c.open(addr)
		sc := open[len(open)-1]
		sc.listener(balancer.SubConnState{ConnectivityState: s, ConnectionError: errors.New("no connection to " + addr)})
		if s == connectivity.Ready {
			sc.health(balancer.SubConnState{ConnectivityState: connectivity.Ready})
		}
		synctest.Wait()
	}
}

// connect makes the endpoints ready.
func (c *fakeConn) connect(names string) {
	c.tb.Helper()
	for _, name := range names {
		c.report(string(name), connecting, ready)
	}
}

// picker returns the picker published last.
func (c *fakeConn) picker() balancer.Picker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Picker
}

// published is how many pickers there were, and the channel's state.
func (c *fakeConn) published() (int, connectivity.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.updates, c.state.ConnectivityState
}

// at returns where RPCs go now: the endpoint, "wait", or what they fail with.
func (c *fakeConn) at() string {
	res, err := c.picker().Pick(balancer.PickInfo{Ctx: c.tb.Context()})
	switch err {
	case nil:
		defer res.Done(balancer.DoneInfo{})
		return res.SubConn.(*fakeSubConn).addr
	case balancer.ErrNoSubConnAvailable:
		return "wait"
	}
	return err.Error()
}

// pick makes one pick and returns the address that it went to, and its Done,
// which may be nil.
func (c *fakeConn) pick() (string, func(balancer.DoneInfo)) {
	c.tb.Helper()
	res, err := c.picker().Pick(balancer.PickInfo{FullMethodName: "/fake.Service/Call", Ctx: c.tb.Context()})
	require.NoError(c.tb, err)
	return res.SubConn.(*fakeSubConn).addr, res.Done
}

// picks makes n picks of RPCs that end with err at once.
func (c *fakeConn) picks(n int, err error) {
	c.tb.Helper()
	for range n {
		_, done := c.pick()
		done(balancer.DoneInfo{Err: err, BytesSent: true, BytesReceived: true})
	}
}

// endpoint is what the ledger of the target knows of an endpoint.
func (c *fakeConn) endpoint(addr string) state.EndpointSnapshot {
	ch := channel{env: &env{T: c.tb.(*testing.T)}, key: c.target.String()}
	return ch.of(addr)
}

func (c *fakeConn) NewSubConn(addrs []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if len(addrs) != 1 || opts.StateListener == nil {
		return nil, errors.New("want one address and a StateListener")
	}
	if c.eager {
		c.drive()
	}
	sc := &fakeSubConn{conn: c, addr: addrs[0].Addr, listener: opts.StateListener, state: connectivity.Idle}
	if !c.succeeds {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.subConns = append(c.subConns, sc)
	}
	return sc, nil
}

func (c *fakeConn) UpdateState(s balancer.State) {
	c.mu.Lock()
	c.updates++
	c.state = s
	c.mu.Unlock()
	c.wakeUp()
}

func (c *fakeConn) RemoveSubConn(sc balancer.SubConn)                    { sc.Shutdown() }
func (c *fakeConn) UpdateAddresses(balancer.SubConn, []resolver.Address) {}
func (c *fakeConn) ResolveNow(resolver.ResolveNowOptions)                {}
func (c *fakeConn) Target() string                                       { return c.target.String() }
func (c *fakeConn) MetricsRecorder() estats.MetricsRecorder              { return c.recorder }

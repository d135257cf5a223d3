package leastconnbalancer_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// fakeConn is a channel in which the test says what becomes of connections. It
// is for one goroutine, as gRPC's calls on a balancer are, and for tests whose
// time is a bubble's.
type fakeConn struct {
	balancer.ClientConn // nil; embedded because the interface demands it
	t                   *testing.T
	balancer            balancer.Balancer

	mu       sync.Mutex // a leaf: nothing is called with it held
	subConns map[string]*fakeSubConn
	updates  int
	state    balancer.State
}

// newFakeConn builds the policy with the config in a channel of its own.
func newFakeConn(t *testing.T) *fakeConn {
	c := &fakeConn{t: t, subConns: map[string]*fakeSubConn{}}
	c.balancer = balancer.Get(leastconnbalancer.Name).Build(c, balancer.BuildOptions{})
	t.Cleanup(c.balancer.Close)
	return c
}

// list gives the policy one-letter endpoints by level, the highest first. The
// config may be "", which is none.
func (c *fakeConn) list(config string, levels ...string) {
	c.t.Helper()
	var lb serviceconfig.LoadBalancingConfig
	if config != "" {
		cfg, err := parse(config)
		require.NoError(c.t, err)
		lb = &cfg
	}
	var eps []resolver.Endpoint
	for level, names := range levels {
		for _, name := range names {
			ep := resolver.Endpoint{Addresses: []resolver.Address{{Addr: string(name)}}}
			eps = append(eps, lcresolver.SetPriority(ep, uint32(level)))
		}
	}
	require.NoError(c.t, c.balancer.UpdateClientConnState(balancer.ClientConnState{
		ResolverState:  resolver.State{Endpoints: eps},
		BalancerConfig: lb,
	}))
	synctest.Wait()
}

// report tells the policy what becomes of the endpoint's connection.
func (c *fakeConn) report(name string, states ...connectivity.State) {
	c.t.Helper()
	for _, s := range states {
		c.mu.Lock()
		sc := c.subConns[name]
		c.mu.Unlock()
		sc.listener(balancer.SubConnState{ConnectivityState: s, ConnectionError: fakeError(name)})
		if s == connectivity.Ready {
			sc.health(balancer.SubConnState{ConnectivityState: connectivity.Ready})
		}
		synctest.Wait()
	}
}

// fakeError is why the connection to an endpoint fails.
type fakeError string

func (e fakeError) Error() string { return "no connection to " + string(e) }

// ready makes the endpoints ready.
func (c *fakeConn) ready(names string) {
	c.t.Helper()
	for _, name := range names {
		c.report(string(name), connectivity.Connecting, connectivity.Ready)
	}
}

// at returns where RPCs go now: the endpoint, "wait", or what they fail with.
func (c *fakeConn) at() string {
	c.mu.Lock()
	p := c.state.Picker
	c.mu.Unlock()
	res, err := p.Pick(balancer.PickInfo{Ctx: c.t.Context()})
	switch err {
	case nil:
		defer res.Done(balancer.DoneInfo{})
		return res.SubConn.(*fakeSubConn).name
	case balancer.ErrNoSubConnAvailable:
		return "wait"
	}
	return err.Error()
}

// published is how many pickers there were, and the channel's state.
func (c *fakeConn) published() (int, connectivity.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.updates, c.state.ConnectivityState
}

func (c *fakeConn) UpdateState(s balancer.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates++
	c.state = s
}

func (c *fakeConn) NewSubConn(addrs []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	sc := &fakeSubConn{name: addrs[0].Addr, listener: opts.StateListener}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subConns[sc.name] = sc
	return sc, nil
}

func (c *fakeConn) ResolveNow(resolver.ResolveNowOptions)   {}
func (c *fakeConn) Target() string                          { return "fake:///service" }
func (c *fakeConn) MetricsRecorder() estats.MetricsRecorder { return benchMetrics }

// fakeSubConn does nothing by itself.
type fakeSubConn struct {
	balancer.SubConn // nil; embedded because the interface demands it
	name             string
	listener, health func(balancer.SubConnState)
}

func (s *fakeSubConn) Connect()  {}
func (s *fakeSubConn) Shutdown() {}
func (s *fakeSubConn) RegisterHealthListener(listener func(balancer.SubConnState)) {
	s.health = listener
}

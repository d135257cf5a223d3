package leastconnbalancer_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// asRoundRobin runs a test with the policy and with round_robin, which is to give
// the same.
func asRoundRobin(t *testing.T, test func(*env, leastconntest.ChannelConfig)) {
	t.Parallel()
	for _, policy := range []string{leastconnbalancer.Name, roundrobin.Name} {
		t.Run(policy, func(t *testing.T) {
			test(parallelEnv(t), leastconntest.ChannelConfig{ServiceConfig: `{"loadBalancingConfig":[{` + strconv.Quote(policy) + `:{}}]}`})
		})
	}
}

// connect makes a channel to the nodes that connects through d.
func (e *env) connect(cfg leastconntest.ChannelConfig, d *dialer, retry time.Duration, nodes ...*leastconntest.Node) *channel {
	e.Helper()
	if cfg.Endpoints == nil {
		cfg.Endpoints = leastconntest.Endpoints(nodes...)
	}
	cfg.DialOptions = d.options(retry)
	c := e.unused(cfg)
	c.Connect()
	return c
}

// waiting makes an RPC that waits until the channel is ready.
func (c *channel) waiting() <-chan result {
	return c.env.async(func() (string, error) { return c.Unary(c.env.ctx, grpc.WaitForReady(true)) })
}

// says waits until RPCs fail with the text.
func (c *channel) says(text string) {
	c.env.Helper()
	c.env.wait("RPCs fail with "+text, func() bool { return strings.Contains(c.unavailable().Error(), text) })
}

const retry = 20 * time.Millisecond

func TestConnectingQueuesRPCs(t *testing.T) {
	asRoundRobin(t, func(e *env, cfg leastconntest.ChannelConfig) {
		ns := e.nodes("a", "b")
		d := newDialer()
		d.shut(ns...)
		c := e.connect(cfg, d, retry, ns...)
		c.waitState(connectivity.Connecting)
		require.Equal(e, codes.DeadlineExceeded, c.brief())
		c.ReportError(errors.New("no such host"))
		require.Equal(e, codes.DeadlineExceeded, c.brief(), "the list is still good")
		waiting := e.async(func() (string, error) { return c.Unary(e.ctx) })
		d.open(ns[1])
		require.Equal(e, result{node: "b"}, <-waiting)
		c.waitState(connectivity.Ready)
		d.open(ns[0])
	})
}

// RPCs that do not wait fail as soon as each node has failed once, with the last
// error; those before them, too. The others wait for a node.
func TestRPCsFailWithTheFirstRoundOfFailures(t *testing.T) {
	asRoundRobin(t, func(e *env, cfg leastconntest.ChannelConfig) {
		for name, list := range map[string]func([]*leastconntest.Node) []resolver.Endpoint{
			"a level":      func(ns []*leastconntest.Node) []resolver.Endpoint { return leastconntest.Endpoints(ns...) },
			"three levels": func(ns []*leastconntest.Node) []resolver.Endpoint { return levels(ns[:1], ns[2:], ns[1:2]) },
		} {
			ns := e.nodes("a", "b", "c")
			d := newDialer()
			d.shut(ns...)
			cfg.Endpoints = list(ns)
			c := e.connect(cfg, d, time.Hour)
			early := e.async(func() (string, error) { return c.Unary(e.ctx) })
			waiting := c.waiting()
			for _, n := range ns {
				e.wait("a connection to "+n.Name(), func() bool { return d.attempts(n) == 1 })
			}
			for _, n := range ns {
				require.Equal(e, codes.DeadlineExceeded, c.brief(), "%s: before %s has failed", name, n.Name())
				d.fail(errors.New("no way to "+n.Name()), n)
				d.open(n)
				if !strings.Contains(cfg.ServiceConfig, roundrobin.Name) { // which does not tell
					e.wait(n.Name()+" has failed", func() bool { return c.member(n).Connectivity.LastError != "" })
				}
			}
			r := <-early
			require.Equal(e, codes.Unavailable, codeOf(r.err))
			c.waitState(connectivity.TransientFailure)
			last := "no way to c"
			if strings.Contains(cfg.ServiceConfig, roundrobin.Name) {
				last = "no way to " // any of them
			}
			require.ErrorContains(e, r.err, last)
			require.ErrorContains(e, c.unavailable(), last)
			require.Equal(e, codes.DeadlineExceeded, c.brief(grpc.WaitForReady(true)))
			c.ReportError(errors.New("no such host"))
			c.says("no such host")
			d.fail(nil, ns...)
			c.Conn().ResetConnectBackoff()
			require.NoError(e, (<-waiting).err)
			c.waitState(connectivity.Ready)
		}
	})
}

func TestFailedAndConnectingQueuesRPCs(t *testing.T) {
	asRoundRobin(t, func(e *env, cfg leastconntest.ChannelConfig) {
		ns := e.nodes("a", "b", "c")
		d := newDialer()
		d.fail(errors.New("a is out of order"), ns[0])
		d.shut(ns[1])
		c := e.connect(cfg, d, retry, ns...)
		c.waitState(connectivity.Ready)
		e.wait("a has failed", func() bool { return d.attempts(ns[0]) > 1 })
		require.Equal(e, map[string]int{"c": 10}, tally(c.calls(10)))
		d.shut(ns[2])
		require.NoError(e, ns[2].Restart())
		c.waitState(connectivity.Connecting)
		require.Equal(e, codes.DeadlineExceeded, c.brief())
		d.open(ns[2])
		c.waitState(connectivity.Ready)
		require.NoError(e, c.UpdateNodes(ns[0]))
		require.Equal(e, connectivity.TransientFailure, c.Conn().GetState(), "a failed node only")
		require.ErrorContains(e, c.unavailable(), "a is out of order")
		d.fail(nil, ns[0])
		c.waitState(connectivity.Ready)
		d.open(ns[1])
	})
}

// A resolver error before the first list, or after an empty one, fails RPCs with
// its text, the newest one; after a good list it changes nothing.
func TestResolverErrors(t *testing.T) {
	asRoundRobin(t, func(e *env, cfg leastconntest.ChannelConfig) {
		ns := e.nodes("a")
		c := e.unused(cfg)
		c.ReportError(errors.New("no such host"))
		c.waitState(connectivity.TransientFailure)
		require.ErrorContains(e, c.unavailable(), "no such host")
		c.ReportError(errors.New("still none"))
		c.says("still none")
		require.Equal(e, codes.DeadlineExceeded, c.brief(grpc.WaitForReady(true)))
		waiting := c.waiting()
		require.NoError(e, c.UpdateNodes(ns...))
		require.Equal(e, result{node: "a"}, <-waiting)
		c.ReportError(errors.New("no such host"))
		require.Equal(e, "a", c.unary())
		e.conns(ns, 1)
	})
	t.Run("after an empty list", func(t *testing.T) {
		e := parallelEnv(t)
		c := e.unused(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{}})
		require.ErrorContains(t, c.unavailable(), "zero addresses")
		c.ReportError(errors.New("no such host"))
		c.says("no such host")
		require.Equal(t, connectivity.TransientFailure, c.Conn().GetState())
		n := e.nodes("a")[0]
		c.update(n)
		require.ErrorContains(t, c.UpdateState(resolver.State{Endpoints: []resolver.Endpoint{{}, {}}}), "bad resolver state")
		require.ErrorContains(t, c.unavailable(), "zero addresses")
	})
	t.Run("from a parent", func(t *testing.T) {
		e := parallelEnv(t)
		n := e.nodes("a")[0]
		c := e.unusedRecorded(&recordingPolicy{early: true, rude: true}, leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{}})
		require.ErrorContains(t, c.unavailable(), errResolver.Error())
		c.update(n)
		require.Equal(t, "a", c.unary())
		held, _ := c.hold(1)
		require.NoError(t, c.Close())
		require.Equal(t, codes.Canceled, codeOf(held[0].Wait()))
		require.Zero(t, c.snapshot().InFlight)
	})
}

// What RPCs fail with is the last error of a node that is listed and takes RPCs;
// a node that drains and fails is no reason.
func TestRPCsFailWithTheLastConnectionError(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	d := newDialer()
	for _, n := range ns {
		d.fail(errors.New("first failure of "+n.Name()), n)
	}
	c := e.connect(leastconntest.ChannelConfig{}, d, retry, ns...)
	c.waitState(connectivity.TransientFailure)
	require.ErrorContains(t, c.unavailable(), "first failure")
	for i, n := range []*leastconntest.Node{ns[0], ns[1], ns[0]} {
		other := ns[(i+1)%2]
		d.shut(other)
		last := "failure " + strconv.Itoa(i) + " of " + n.Name()
		d.fail(errors.New(last), n)
		c.says(last)
		d.open(other)
	}
	d.shut(ns[0])
	d.fail(errors.New("no way to b"), ns[1])
	c.says("no way to b")
	require.NoError(t, c.UpdateState(weighted(ns, 1, 0)))
	for range 3 {
		tried := d.attempts(ns[1])
		e.wait("b has failed again", func() bool { return d.attempts(ns[1]) > tried+1 })
		require.ErrorContains(t, c.unavailable(), "of a")
	}
	require.NoError(t, c.UpdateState(weighted(ns, 0, 0)))
	require.ErrorContains(t, c.unavailable(), "all 2 endpoints are draining")
	require.NoError(t, c.UpdateState(weighted(ns, 0, 1)))
	require.ErrorContains(t, c.unavailable(), "no way to b")
	require.NoError(t, c.UpdateNodes(ns[0]))
	require.ErrorContains(t, c.unavailable(), "of a", "b has left the list")
	d.open(ns[0])
}

// While all that take RPCs connect, RPCs wait, whatever drains beside them.
func TestDrainingWhileTheNextNodeConnects(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	d := newDialer()
	c := e.connect(leastconntest.ChannelConfig{}, d, retry, ns[0])
	c.hold(3)
	d.shut(ns[1])
	require.NoError(t, c.UpdateState(weighted(ns, 0, 1)))
	require.Equal(t, codes.DeadlineExceeded, c.brief(), "RPCs wait for b")
	waiting := e.async(func() (string, error) { return c.Unary(e.ctx) })
	d.open(ns[1])
	require.Equal(t, result{node: "b"}, <-waiting)
	c.counts(ns, 3, 0)
}

// A channel that has become idle, and so has lost its balancer, also while nothing
// gets through, finds the load of its service again when it wakes, for as long as
// another channel has it.
func TestIdleAndWake(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	p := e.proxied(ns[1])
	busy := e.dialWith(leastconntest.ChannelConfig{Target: e.Name()}, ns[0])
	busy.hold(4)
	cfg := quickly()
	cfg.Target, cfg.Endpoints = e.Name(), []resolver.Endpoint{ns[0].Endpoint(), p.Endpoint()}
	cfg.DialOptions = append(cfg.DialOptions, grpc.WithIdleTimeout(time.Second))
	c := e.unused(cfg)
	for range 2 {
		var held []*leastconntest.Stream
		e.wait("four streams at b", func() bool { // it may be idle again before the first
			c.Connect()
			if !c.readyAt(p.Endpoint()) {
				return false
			}
			var by map[string]int
			if held, by = c.hold(4); by["b"] == 4 {
				return true
			}
			require.NoError(t, leastconntest.EndAll(held))
			return false
		})
		p.Blackhole(true)
		leastconntest.CancelAll(held)
		c.waitState(connectivity.Idle)
		c.counts(ns[:1], 4)
		require.EqualValues(t, 4, c.snapshot().InFlight)
		p.Heal()
	}
	require.NoError(t, c.Close())
	e.wait("no connection is left", func() bool { return p.Conns() == 0 })
}

// A node whose health check hangs is as good as one without a connection.
func TestHealthCheckThatHangs(t *testing.T) {
	e := parallelEnv(t)
	hangs := make(chan struct{})
	a := e.node("a", grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if strings.Contains(info.FullMethod, "Health") {
			select {
			case <-hangs:
			case <-s.Context().Done():
			}
		}
		return handler(srv, s)
	}))
	b := e.nodes("b")[0]
	cfg := quickly()
	cfg.ServiceConfig = strings.Replace(withoutPenalty, "}]", `}],"healthCheckConfig":{"serviceName":""}`, 1)
	cfg.Endpoints = leastconntest.Endpoints(a, b)
	c := e.dialWith(cfg, b)
	e.wait("a has a connection", func() bool { return a.OpenConns() == 1 })
	require.Equal(t, map[string]int{"b": 10}, tally(c.calls(10)))
	close(hangs)
	c.waitReady(a)
}

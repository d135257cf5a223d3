package leastconnbalancer_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// asRoundRobin runs a test with the policy and with round_robin, which is to
// give the same.
func asRoundRobin(t *testing.T, test func(*lab, leastconntest.ChannelConfig)) {
	for _, policy := range []string{leastconnbalancer.Name, roundrobin.Name} {
		t.Run(policy, func(t *testing.T) {
			test(newLab(t), leastconntest.ChannelConfig{
				ServiceConfig: `{"loadBalancingConfig":[{` + strconv.Quote(policy) + `:{}}]}`,
			})
		})
	}
}

// connect makes a channel to the nodes that connects through d.
func (l *lab) connect(cfg leastconntest.ChannelConfig, d *dialer, nodes ...*leastconntest.Node) *channel {
	l.Helper()
	cfg.Endpoints = leastconntest.Endpoints(nodes...)
	cfg.DialOptions = dialOptions(d)
	c := l.unused(cfg)
	c.Connect()
	return c
}

func (c *channel) waitState(want connectivity.State) {
	c.lab.Helper()
	c.lab.wait("the channel is "+want.String(), func() bool { return c.Conn().GetState() == want })
}

func TestConnectingQueuesRPCs(t *testing.T) {
	asRoundRobin(t, func(l *lab, cfg leastconntest.ChannelConfig) {
		ns := l.nodes("a", "b")
		d := newDialer()
		d.shut(ns...)
		c := l.connect(cfg, d, ns...)
		c.waitState(connectivity.Connecting)
		require.Equal(l, codes.DeadlineExceeded, c.brief())

		waiting := l.async(func() (string, error) { return c.Unary(l.ctx) })
		d.open(ns[1])
		require.Equal(l, result{node: "b"}, <-waiting)
		c.waitState(connectivity.Ready)
		d.open(ns[0])
	})
}

func TestAllFailedFailsRPCs(t *testing.T) {
	asRoundRobin(t, func(l *lab, cfg leastconntest.ChannelConfig) {
		ns := l.nodes("a", "b")
		ns[0].Stop()
		ns[1].Stop()
		c := l.connect(cfg, newDialer(), ns...)
		c.waitState(connectivity.TransientFailure)
		require.ErrorContains(l, c.unavailable(), "connection refused")

		require.Equal(l, codes.DeadlineExceeded, c.brief(grpc.WaitForReady(true)))
		waiting := l.async(func() (string, error) { return c.Unary(l.ctx, grpc.WaitForReady(true)) })
		require.NoError(l, ns[1].Restart())
		require.Equal(l, result{node: "b"}, <-waiting)
		c.waitState(connectivity.Ready)
	})
}

func TestFailedAndConnectingQueuesRPCs(t *testing.T) {
	asRoundRobin(t, func(l *lab, cfg leastconntest.ChannelConfig) {
		ns := l.nodes("a", "b")
		d := newDialer()
		d.fail(ns[0], errors.New("a is out of order"))
		d.shut(ns[1])
		c := l.connect(cfg, d, ns...)
		l.wait("a has failed", func() bool { return d.attempts(ns[0]) > 1 && d.attempts(ns[1]) == 1 })
		require.Equal(l, codes.DeadlineExceeded, c.brief())
		require.Equal(l, connectivity.Connecting, c.Conn().GetState())

		d.fail(ns[1], errors.New("b is out of order"))
		d.open(ns[1])
		c.waitState(connectivity.TransientFailure)
		require.ErrorContains(l, c.unavailable(), "is out of order")
		d.fail(ns[0], nil)
		c.waitState(connectivity.Ready)
		node, err := c.Unary(l.ctx)
		require.NoError(l, err)
		require.Equal(l, "a", node)
	})
}

func TestReadyNodesServeWhileOthersFail(t *testing.T) {
	asRoundRobin(t, func(l *lab, cfg leastconntest.ChannelConfig) {
		ns := l.nodes("a", "b", "c")
		d := newDialer()
		d.fail(ns[0], errors.New("a is out of order"))
		d.shut(ns[1])
		c := l.connect(cfg, d, ns...)
		c.waitState(connectivity.Ready)
		l.wait("a has failed", func() bool { return d.attempts(ns[0]) > 1 })
		require.Equal(l, map[string]int{"c": 10}, tally(c.calls(10)))

		d.shut(ns[2])
		require.NoError(l, ns[2].Restart())
		c.waitState(connectivity.Connecting)
		require.Equal(l, codes.DeadlineExceeded, c.brief())
		d.open(ns[1:]...)
		c.waitState(connectivity.Ready)
	})
}

func TestListOfFailedNodesOnly(t *testing.T) {
	asRoundRobin(t, func(l *lab, cfg leastconntest.ChannelConfig) {
		ns := l.nodes("a", "b")
		d := newDialer()
		d.fail(ns[0], errors.New("a is out of order"))
		c := l.connect(cfg, d, ns...)
		c.waitState(connectivity.Ready)
		l.wait("a has failed", func() bool { return d.attempts(ns[0]) > 1 })
		require.NoError(l, c.UpdateNodes(ns[0]))
		require.Equal(l, connectivity.TransientFailure, c.Conn().GetState())
		require.ErrorContains(l, c.unavailable(), "a is out of order")
	})
}

func TestResolverErrorBeforeAnyList(t *testing.T) {
	asRoundRobin(t, func(l *lab, cfg leastconntest.ChannelConfig) {
		ns := l.nodes("a")
		c := l.unused(cfg)
		c.ReportError(errors.New("no such host"))
		c.waitState(connectivity.TransientFailure)
		require.ErrorContains(l, c.unavailable(), "no such host")
		c.ReportError(errors.New("still no such host"))
		l.wait("RPCs fail with the newest error", func() bool {
			return strings.Contains(c.unavailable().Error(), "still no such host")
		})

		require.Equal(l, codes.DeadlineExceeded, c.brief(grpc.WaitForReady(true)))
		waiting := l.async(func() (string, error) { return c.Unary(l.ctx, grpc.WaitForReady(true)) })
		require.NoError(l, c.UpdateNodes(ns...))
		require.Equal(l, result{node: "a"}, <-waiting)
		c.ReportError(errors.New("no such host"))
		require.Equal(l, "a", c.unary())
	})
}

func TestResolverErrorAfterAnEmptyList(t *testing.T) {
	l := newLab(t)
	c := l.unused(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{}})
	require.ErrorContains(t, c.unavailable(), "zero addresses")
	c.ReportError(errors.New("no such host"))
	l.wait("RPCs fail with the newest error", func() bool {
		return strings.Contains(c.unavailable().Error(), "no such host")
	})
	require.Equal(t, connectivity.TransientFailure, c.Conn().GetState())
}

func TestResolverErrorWithoutConnection(t *testing.T) {
	asRoundRobin(t, func(l *lab, cfg leastconntest.ChannelConfig) {
		ns := l.nodes("a")
		d := newDialer()
		d.shut(ns...)
		c := l.connect(cfg, d, ns...)
		c.ReportError(errors.New("no such host"))
		require.Equal(l, codes.DeadlineExceeded, c.brief(), "the list is still good")
		d.fail(ns[0], errors.New("a is out of order"))
		d.open(ns[0])
		c.waitState(connectivity.TransientFailure)
		l.wait("RPCs fail with the resolver's error", func() bool {
			c.ReportError(errors.New("no such host"))
			return strings.Contains(c.unavailable().Error(), "no such host")
		})
	})
}

func TestRPCsFailWithTheLastConnectionError(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	d := newDialer()
	for _, n := range ns {
		d.fail(n, errors.New("first failure of "+n.Name()))
	}
	c := l.connect(leastconntest.ChannelConfig{}, d, ns...)
	c.waitState(connectivity.TransientFailure)
	require.ErrorContains(t, c.unavailable(), "first failure")

	for i, n := range []*leastconntest.Node{ns[0], ns[1], ns[0]} {
		other := ns[(i+1)%2]
		d.shut(other)
		last := "failure " + strconv.Itoa(i) + " of " + n.Name()
		d.fail(n, errors.New(last))
		l.wait(last, func() bool { return strings.Contains(c.unavailable().Error(), last) })
		d.open(other)
	}

	d.shut(ns[0])
	d.fail(ns[1], errors.New("last failure of b"))
	l.wait("b fails last", func() bool { return strings.Contains(c.unavailable().Error(), "last failure of b") })
	require.NoError(t, c.Update([]resolver.Endpoint{ns[0].Endpoint()}...))
	require.ErrorContains(t, c.unavailable(), "of a", "b has left the list")
	d.open(ns[0])
}

package leastconnbalancer_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

// guarded is how to dial with a config of the policy.
func guarded(cfg leastconnbalancer.Config) leastconntest.ChannelConfig {
	return leastconntest.ChannelConfig{ServiceConfig: cfg.ServiceConfig()}
}

// capped caps the RPCs in flight on every node.
func capped(limit uint32) leastconnbalancer.Config {
	return leastconnbalancer.Config{MaxInFlight: limit}
}

// reconfigure has the resolver send another config with the list of nodes.
func (c *channel) reconfigure(cfg leastconnbalancer.Config, nodes ...*leastconntest.Node) {
	c.lab.Helper()
	require.NoError(c.lab, c.UpdateConfig(cfg.ServiceConfig(), leastconntest.Endpoints(nodes...)...))
}

// limited lists the nodes with caps of their own; -1 is none of its own.
func limited(nodes []*leastconntest.Node, limits ...int) []resolver.Endpoint {
	eps := leastconntest.Endpoints(nodes...)
	for i, limit := range limits {
		if limit >= 0 {
			eps[i] = lcresolver.SetMaxInFlight(eps[i], uint32(limit))
		}
	}
	return eps
}

// of returns what the channel's ledger knows of the node.
func (c *channel) of(n *leastconntest.Node) state.EndpointSnapshot {
	c.lab.Helper()
	for _, s := range c.snapshot().Endpoints {
		if slices.Contains(s.Addresses, n.Addr()) {
			return s
		}
	}
	return state.EndpointSnapshot{}
}

// penalty is that of the nodes together.
func (c *channel) penalty(nodes ...*leastconntest.Node) (sum int) {
	c.lab.Helper()
	for _, n := range nodes {
		sum += int(c.of(n).Penalty)
	}
	return sum
}

// penalties is how many there have ever been.
func (c *channel) penalties() (sum int) {
	c.lab.Helper()
	for _, r := range c.snapshot().EndpointSets {
		sum += int(r.Penalties)
	}
	return sum
}

// waits waits until so many RPCs of the ledger wait for room.
func (c *channel) waits(n int) {
	c.lab.Helper()
	c.lab.wait(fmt.Sprintf("%d RPCs wait for room", n), func() bool { return c.snapshot().Waiting == int64(n) })
}

// line lets n unary RPCs wait for room, each behind the one before.
func (c *channel) line(n int) (rpcs []<-chan result) {
	c.lab.Helper()
	before := int(c.snapshot().Waiting)
	for i := range n {
		rpcs = append(rpcs, c.lab.async(func() (string, error) { return c.Unary(c.lab.ctx) }))
		c.waits(before + i + 1)
	}
	return rpcs
}

// within is a context that ends after d.
func (l *lab) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(l.ctx, d)
	l.Cleanup(cancel)
	return ctx
}

// peak is the highest number of handlers that ran at one time.
type peak struct{ live, most atomic.Int64 }

func (p *peak) enter() (leave func()) {
	live := p.live.Add(1)
	for most := p.most.Load(); live > most && !p.most.CompareAndSwap(most, live); {
		most = p.most.Load()
	}
	return func() { p.live.Add(-1) }
}

// options let a node's handlers be counted.
func (p *peak) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			defer p.enter()()
			return handler(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			defer p.enter()()
			return handler(srv, s)
		}),
	}
}

// peaked starts a node for each name, and counts its handlers.
func (l *lab) peaked(names ...string) (nodes []*leastconntest.Node, peaks []*peak) {
	l.Helper()
	for _, name := range names {
		p := &peak{}
		nodes = append(nodes, l.node(leastconntest.Options{Name: name, ServerOptions: p.options()}))
		peaks = append(peaks, p)
	}
	return nodes, peaks
}

// atMost is a check for watch: no node has more than limit in flight.
func atMost(limit int64) func(state.Snapshot) error {
	return func(s state.Snapshot) error {
		for _, n := range s.Endpoints {
			if n.InFlight > limit {
				return fmt.Errorf("node %v has %d in flight, more than %d", n.Addresses, n.InFlight, limit)
			}
		}
		return nil
	}
}

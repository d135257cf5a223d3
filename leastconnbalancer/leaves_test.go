package leastconnbalancer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

const leavesConfig = `{"loadBalancingConfig":[{"least_conn_leaves":{}}]}`

func init() { balancer.Register(leavesBuilder{}) }

type (
	leavesKey struct{} // of an endpoint: a string of the leaves that list it, such as "01"
	leafKey   struct{} // of an RPC's context: the leaf that it goes to
)

// leavesBuilder builds a parent of two least_conn policies on one ClientConn.
type leavesBuilder struct{}

func (leavesBuilder) Name() string { return "least_conn_leaves" }

func (leavesBuilder) Build(cc balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	p := &leaves{ClientConn: cc}
	for i := range p.leaves {
		p.pickers[i] = base.NewErrPicker(balancer.ErrNoSubConnAvailable)
		p.leaves[i] = balancer.Get(leastconnbalancer.Name).Build(leafConn{p, i}, opts)
	}
	return p
}

// leaves splits the endpoints, and picks from the leaf that an RPC names.
type leaves struct {
	balancer.ClientConn
	leaves [2]balancer.Balancer

	mu      sync.Mutex // a leaf's locks come before it
	pickers [2]balancer.Picker
}

func (p *leaves) UpdateClientConnState(s balancer.ClientConnState) error {
	var errs []error
	for i, leaf := range p.leaves {
		own := resolver.State{Attributes: s.ResolverState.Attributes}
		for _, ep := range s.ResolverState.Endpoints {
			if of, _ := ep.Attributes.Value(leavesKey{}).(string); strings.Contains(of, string(rune('0'+i))) {
				own.Endpoints = append(own.Endpoints, ep)
			}
		}
		if err := leaf.UpdateClientConnState(balancer.ClientConnState{ResolverState: own}); err != nil && len(own.Endpoints) > 0 {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (p *leaves) ResolverError(err error) {
	for _, leaf := range p.leaves {
		leaf.ResolverError(err)
	}
}

func (p *leaves) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

func (p *leaves) ExitIdle() {
	for _, leaf := range p.leaves {
		leaf.ExitIdle()
	}
}

func (p *leaves) Close() {
	for _, leaf := range p.leaves {
		leaf.Close()
	}
}

// Pick implements balancer.Picker.
func (p *leaves) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	i, _ := info.Ctx.Value(leafKey{}).(int)
	p.mu.Lock()
	picker := p.pickers[i]
	p.mu.Unlock()
	return picker.Pick(info)
}

// leafConn embeds the parent as its ClientConn to intercept UpdateState.
type leafConn struct {
	*leaves
	leaf int
}

func (c leafConn) UpdateState(s balancer.State) {
	c.mu.Lock()
	c.pickers[c.leaf] = s.Picker
	c.mu.Unlock()
	c.ClientConn.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: c.leaves})
}

// split lists the nodes by the leaves that each is in.
func split(of string, nodes ...*leastconntest.Node) []resolver.Endpoint {
	var eps []resolver.Endpoint
	for i, leaf := range strings.Fields(of) {
		ep := nodes[i].Endpoint()
		ep.Attributes = ep.Attributes.WithValue(leavesKey{}, leaf)
		eps = append(eps, ep)
	}
	return eps
}

// holdAt holds n streams from a leaf.
func (c *channel) holdAt(leaf, n int) (streams []*leastconntest.Stream, by map[string]int) {
	c.lab.Helper()
	streams, err := c.OpenN(context.WithValue(c.lab.ctx, leafKey{}, leaf), n)
	require.NoError(c.lab, err)
	return streams, leastconntest.Counts(streams)
}

// dialLeaves opens a channel with two leaves.
func (l *lab) dialLeaves(of string, nodes ...*leastconntest.Node) *channel {
	l.Helper()
	c := l.dialWith(leastconntest.ChannelConfig{ServiceConfig: leavesConfig, Endpoints: split(of, nodes...)})
	for i, leaf := range strings.Fields(of) {
		c.waitMembers(len(leaf), nodes[i])
	}
	return c
}

// Leaves of one channel share counts and each keeps its own members.
func TestTwoLeavesShareCountsNotMembers(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dialLeaves("0 01 1", ns...)
	_, by := c.holdAt(0, 4)
	require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
	_, by = c.holdAt(1, 4)
	require.Equal(t, map[string]int{"b": 1, "c": 3}, by)
	_, by = c.holdAt(0, 1)
	require.Equal(t, map[string]int{"a": 1}, by)
	c.counts(ns, 3, 3, 3)
	l.served(ns, 3, 3, 3)
	l.conns(ns, 1, 2, 1)
}

// What one leaf is told takes nothing from the other.
func TestLeavesDoNotEvictEachOther(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	c := l.dialLeaves("01 01 01 01", ns...)
	held, _ := c.holdAt(0, 4)
	list := func(of string, members ...int) {
		t.Helper()
		require.NoError(t, c.Update(split(of, ns...)...))
		for i, want := range members {
			l.wait("members of "+ns[i].Name(), func() bool { return c.members(ns[i]) == want })
		}
		require.NoError(t, leastconntest.PingAll(held))
		c.counts(ns, 1, 1, 1, 1)
	}
	list("01 1 1 1", 2, 1, 1, 1)
	s, by := c.holdAt(1, 4)
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}, by)
	leastconntest.CancelAll(s)
	s, by = c.holdAt(0, 4)
	require.Equal(t, map[string]int{"a": 4}, by)
	leastconntest.CancelAll(s)
	list("1 1 1 1", 1, 1, 1, 1)
	_, err := c.Unary(context.WithValue(l.ctx, leafKey{}, 0))
	require.ErrorContains(t, err, "zero addresses")
	list("1 1 0 0", 1, 1, 1, 1)
	list("0 0 1 1", 1, 1, 1, 1)
	s, by = c.holdAt(0, 2)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, by)
	leastconntest.CancelAll(s)
	l.conns(ns[:1], 3)
}

// Both leaves change at random under calls; each takes from its own list.
func TestLeavesChangeUnderLoad(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	c := l.dialLeaves("0 0 1 1", ns...)
	held, _ := c.holdAt(0, 4)
	more, _ := c.holdAt(1, 4)
	held = append(held, more...)
	stop := c.watch(valid)
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			leaf := context.WithValue(ctx, leafKey{}, i%2)
			for ctx.Err() == nil {
				if _, err := c.Unary(leaf); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 60 {
		all := []string{"0", "1", "01", "01"}
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		require.NoError(t, c.Update(split(strings.Join(all, " "), ns...)...))
		for i, n := range ns {
			l.wait("members of "+n.Name(), func() bool { return c.members(n) == len(all[i]) })
		}
	}
	cancel()
	callers.Wait()
	stop()
	require.NoError(t, leastconntest.PingAll(held))
	l.wait("the calls are given back", func() bool { return c.snapshot().InFlight == 8 })
	c.counts(ns, slices.Repeat([]int{2}, 4)...)
	_, err := c.Unary(context.WithValue(l.ctx, leafKey{}, 1))
	require.Equal(t, codes.OK, codeOf(err))
}

package leastconnbalancer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// identified is the node as an endpoint with an explicit id.
func identified(id string, n *leastconntest.Node) resolver.Endpoint {
	return lcresolver.SetID(n.Endpoint(), id)
}

// Of two endpoints with one id the first holds, wherever the other one stood
// before; what is not listed gets nothing.
func TestOneIDListedTwice(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dialWith(leastconntest.ChannelConfig{
		Endpoints: []resolver.Endpoint{identified("y", ns[0]), identified("x", ns[1])},
	}, ns[:2]...)
	require.NoError(t, c.Update(identified("x", ns[2]), identified("x", ns[1])))
	c.waitReady(ns[2])
	_, by := c.hold(2)
	require.Equal(t, map[string]int{"c": 2}, by)
	l.wait("a and b have no connection", func() bool { return ns[0].OpenConns()+ns[1].OpenConns() == 0 })
	require.NoError(t, c.Update(ns[0].Endpoint()))
	c.waitReady(ns[0])
	_, by = c.hold(4)
	require.Equal(t, map[string]int{"a": 4}, by)
}

// A list that flaps while streams live does not pile up connections.
func TestFlappingListKeepsFewConnections(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns...)
	c.hold(4)
	for range 20 {
		c.update(ns[1])
		c.update(ns...)
	}
	// That of the streams, the one that left last, and the one in use; well before
	// those that linger would have gone by themselves.
	ctx, cancel := context.WithTimeout(l.ctx, 2*time.Second)
	defer cancel()
	require.NoError(t, leastconntest.WaitFor(ctx, "a has three connections at most", func() bool { return ns[0].OpenConns() <= 3 }))
	c.counts(ns, 2, 2)
}

// An RPC on its way to a node that leaves is served, also when the resource key
// changes in the same update.
func TestKeyMovesUnderAnRPCOnItsWay(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns[0])
	c.hold(1)
	creds := slowCreds{make(chan struct{}), make(chan struct{})}
	rpc := l.async(func() (string, error) { return c.Unary(l.ctx, grpc.PerRPCCredentials(creds)) })
	<-creds.asked
	require.NoError(t, c.UpdateState(lcresolver.SetResourceKey(
		resolver.State{Endpoints: leastconntest.Endpoints(ns[1])}, "moved under an RPC")))
	close(creds.answer)
	require.Equal(t, result{node: "a"}, <-rpc)
}

// A channel that moves to another key brings only what it lists now: the id of
// an endpoint that has left is not put on a node there.
func TestKeyMovesWithoutWhatHasLeft(t *testing.T) {
	const key = "moved without what has left"
	l := newLab(t)
	ns := l.nodes("a", "b")
	other := l.dialAs(key, leastconntest.ChannelConfig{
		ServiceConfig: `{"loadBalancingConfig":[{"least_conn":{"resourceKey":"` + key + `"}}]}`,
	}, ns[0])
	other.hold(3)
	c := l.dialWith(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{identified("old", ns[0])}}, ns[0])
	require.NoError(t, c.UpdateState(lcresolver.SetResourceKey(
		resolver.State{Endpoints: []resolver.Endpoint{identified("new", ns[0]), identified("nb", ns[1])}}, key)))
	c.key = key
	c.waitMembers(2, ns[0])
	c.waitReady(ns...)
	_, by := c.hold(3)
	require.Equal(t, map[string]int{"b": 3}, by)
}

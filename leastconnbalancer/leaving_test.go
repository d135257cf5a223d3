package leastconnbalancer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
)

// slowCreds lets an RPC wait between its pick and its stream.
type slowCreds struct{ asked, answer chan struct{} }

func (c slowCreds) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	c.asked <- struct{}{}
	<-c.answer
	return nil, nil
}

func (slowCreds) RequireTransportSecurity() bool { return false }

// An RPC that was picked before its node left the list, and asks for its stream
// after that, is served although other streams keep the connection.
func TestD70RPCOnItsWayToALeavingNode(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns[0])
	held, _ := c.hold(1)
	creds := slowCreds{make(chan struct{}), make(chan struct{})}
	rpc := l.async(func() (string, error) { return c.Unary(l.ctx, grpc.PerRPCCredentials(creds)) })
	<-creds.asked
	c.update(ns[1])
	close(creds.answer)
	require.Equal(t, result{node: "a"}, <-rpc)

	// The connection goes with its last stream, the node with its last lease.
	require.NoError(t, held[0].End())
	_, known := c.inFlight(ns[0])
	require.False(t, known)
	l.wait("a's connection is closed", func() bool { return ns[0].OpenConns() == 0 })
}

// A channel that closes does not wait for children that linger.
func TestLeavingNodesCloseWithTheChannel(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dial(ns[0])
	c.hold(2)
	c.update(ns[1])
	require.Equal(t, 1, ns[0].OpenConns())
	require.NoError(t, c.Close())
	l.wait("both connections are closed", func() bool { return ns[0].OpenConns()+ns[1].OpenConns() == 0 })
}

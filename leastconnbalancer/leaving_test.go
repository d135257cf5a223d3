package leastconnbalancer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
)

func doneWith(err error) balancer.DoneInfo {
	return balancer.DoneInfo{Err: err, BytesSent: true, BytesReceived: true}
}

// A connection that leaves with RPCs stays as long as they do.
func TestLeavingConnections(t *testing.T) {
	inFakeTime(t, "busy", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "a")
		c.connect("a")
		_, done := c.pick()
		c.list(`{}`, "b")
		passes(time.Hour)
		require.Len(t, c.open("a"), 1)
		done(doneWith(nil))
		passes(0)
		require.Empty(t, c.open("a"))
	})
	inFakeTime(t, "not busy", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "ac")
		c.connect("a")
		c.list(`{}`, "b")
		passes(0)
		require.Empty(t, c.open("a"))
		require.Empty(t, c.open("c"))
	})
	inFakeTime(t, "busy and lost", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "a")
		c.connect("a")
		c.pick()
		c.report("a", idle)
		c.list(`{}`, "b")
		passes(0)
		require.Empty(t, c.open("a"))
	})
	inFakeTime(t, "the balancer closes", func(t *testing.T, c *fakeConn) {
		c.list(`{}`, "a")
		c.connect("a")
		_, done := c.pick()
		c.list(`{}`, "b")
		c.balancer.Close()
		done(doneWith(nil))
		passes(0)
		require.Empty(t, c.open("a"))
		require.Empty(t, c.open("b"))
		before, _ := c.published()
		c.balancer.ResolverError(errAtOnce)
		c.balancer.ExitIdle()
		c.list(`{}`, "ab")
		passes(time.Minute)
		after, _ := c.published()
		require.Equal(t, before, after, "pickers of a closed balancer")
	})
}

// slowCreds lets an RPC wait between its pick and its stream.
type slowCreds struct{ asked, answer chan struct{} }

func newSlowCreds() slowCreds { return slowCreds{make(chan struct{}, 10), make(chan struct{})} }

func (c slowCreds) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	c.asked <- struct{}{}
	<-c.answer
	return nil, nil
}

func (slowCreds) RequireTransportSecurity() bool { return false }

// An RPC that was picked before its node left the list, and asks for its stream
// after that, is served although other streams keep the connection, and although
// the resource key changes with the list.
func TestRPCOnItsWayToALeavingNode(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"same key": "", "other key": t.Name()} {
		t.Run(name, func(t *testing.T) {
			e := parallelEnv(t)
			ns := e.nodes("a", "b")
			c := e.dial(ns[0])
			held, _ := c.hold(1)
			creds := newSlowCreds()
			rpc := e.async(func() (string, error) { return c.Unary(e.ctx, grpc.PerRPCCredentials(creds)) })
			<-creds.asked
			require.NoError(t, c.UpdateState(listKeyed(key, ns[1])))
			close(creds.answer)
			require.Equal(t, result{node: "a"}, <-rpc)
			require.NoError(t, held[0].End())
			_, known := c.inFlight(ns[0])
			require.False(t, known)
			require.NoError(t, c.Close())
			e.wait("all connections are closed", func() bool { return ns[0].OpenConns()+ns[1].OpenConns() == 0 })
		})
	}
}

package leastconnbalancer_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// listOne lists the endpoint alone.
func (c *fakeConn) listOne(ep resolver.Endpoint) {
	c.tb.Helper()
	require.NoError(c.tb, c.balancer.UpdateClientConnState(balancer.ClientConnState{
		ResolverState: resolver.State{Endpoints: []resolver.Endpoint{ep}},
	}))
	synctest.Wait()
}

// lives has the endpoint's connection be READY for d, and end.
func (c *fakeConn) lives(name string, d time.Duration) {
	c.tb.Helper()
	c.report(name, connecting, ready)
	time.Sleep(d)
	c.report(name, idle)
}

// pauses checks that the endpoint has failed, connects again after 0.8 to 1.2 times
// d, and not because it is asked to.
func (c *fakeConn) pauses(d time.Duration) {
	c.tb.Helper()
	before := time.Now()
	require.Contains(c.tb, c.at(), "connections in a row ended within 1s", "pause %v", d)
	c.balancer.ExitIdle()
	for {
		if _, s := c.published(); s != failure {
			break
		}
		passes(time.Millisecond)
	}
	_, s := c.published()
	require.Equal(c.tb, connecting, s)
	require.InDelta(c.tb, d.Seconds(), time.Since(before).Seconds(), 0.2*d.Seconds()+0.002)
}

func (c *fakeConn) connectsAtOnce() {
	c.tb.Helper()
	_, s := c.published()
	require.Equal(c.tb, connecting, s)
}

// The first connection that does not live is followed by another at once; from the
// second in a row on, they come at gRPC's default backoff; one that lives for a
// second resets it.
func TestConnectionsThatDoNotLive(t *testing.T) {
	inFakeTime(t, "backoff", func(t *testing.T, c *fakeConn) {
		c.list("", "a")
		for _, lived := range []time.Duration{time.Second, time.Hour} {
			c.lives("a", time.Second-1)
			c.connectsAtOnce()
			d := time.Second
			for range 14 {
				c.lives("a", time.Second-1)
				c.pauses(min(d, 120*time.Second))
				d = d * 8 / 5
			}
			c.lives("a", lived)
			c.connectsAtOnce()
		}
		for range 100 {
			c.lives("a", time.Second) // as a server that drains its connections early
			c.connectsAtOnce()
		}
	})
}

// A connection that gRPC loses before it reports it as READY did not live. One that
// fails is none: gRPC sees to it.
func TestConnectionsThatNeverLive(t *testing.T) {
	inFakeTime(t, "unseen", func(t *testing.T, c *fakeConn) {
		c.list("", "a")
		c.report("a", connecting, idle)
		c.connectsAtOnce()
		c.report("a", connecting, failure, idle, connecting, idle)
		c.pauses(time.Second)
	})
}

// Other endpoints take the RPCs meanwhile, of lower levels, too.
func TestPauseIsAFailure(t *testing.T) {
	inFakeTime(t, "levels", func(t *testing.T, c *fakeConn) {
		c.list("", "a", "b")
		c.connect("b")
		c.lives("a", 0)
		require.Equal(t, "wait", c.at())
		c.lives("a", 0)
		require.Equal(t, "b", c.at())
		c.connect("a")
		require.Equal(t, "a", c.at(), "if it connects all the same")
	})
}

// An endpoint that gets another address connects there at once; one that leaves, or
// a policy that is closed, leaves no timer.
func TestPauseEnds(t *testing.T) {
	inFakeTime(t, "readdressed", func(t *testing.T, c *fakeConn) {
		pod := func(addr string) {
			ep := resolver.Endpoint{Addresses: []resolver.Address{{Addr: addr}}}
			c.listOne(lcresolver.SetID(ep, "pod"))
		}
		pod("a")
		c.lives("a", 0)
		c.lives("a", 0)
		_, s := c.published()
		require.Equal(t, failure, s)
		before := time.Now()
		pod("b")
		c.connect("b")
		require.Equal(t, "b", c.at())
		require.Equal(t, before, time.Now())
		c.report("b", idle)
		c.connectsAtOnce()
		c.lives("b", 0)
		_, s = c.published()
		require.Equal(t, failure, s)
	})
}

// hangUp is an endpoint that accepts connections, says hello, and hangs up.
func (l *env) hangUp() (resolver.Endpoint, *atomic.Int64) {
	l.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(l, err)
	l.Cleanup(func() { listener.Close() })
	var accepted atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			_, _ = io.ReadFull(conn, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
			_, _ = conn.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // a SETTINGS frame without settings
			conn.Close()
		}
	}()
	return resolver.Endpoint{Addresses: []resolver.Address{{Addr: listener.Addr().String()}}}, &accepted
}

// A server that hangs up at once is not dialled without end.
func TestServerThatHangsUpIsLeftInPeace(t *testing.T) {
	l := newEnv(t)
	bad, accepted := l.hangUp()
	c := l.unused(leastconntest.ChannelConfig{Endpoints: []resolver.Endpoint{bad}})
	c.Connect()
	l.wait("it is dialled twice, and then counts as failed", func() bool {
		return accepted.Load() >= 2 && c.Conn().GetState() == connectivity.TransientFailure
	})
	c.says("connections in a row ended within 1s") // two, or more by now
	ctx, cancel := context.WithTimeout(l.ctx, 3*time.Second)
	defer cancel()
	<-ctx.Done()
	require.Less(t, accepted.Load(), int64(12), "connections in three seconds; without a pause there are hundreds")
}

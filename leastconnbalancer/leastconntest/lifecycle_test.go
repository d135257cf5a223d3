package leastconntest_test

import (
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

func TestNodeGoAwayKeepsStreamsAndTakesNewConnections(t *testing.T) {
	a := startNodes(t, leastconntest.Options{}, "a")[0]
	c := dial(t, a)
	streams, err := c.OpenN(t.Context(), 6)
	require.NoError(t, err)

	for round := 2; round <= 4; round++ {
		a.GoAway()
		eventually(t, "the channel to reconnect", func() bool { return a.Conns() == round })
	}
	// A stream of the fourth connection, which then ages as the others did.
	require.NoError(t, c.WaitServed(t.Context(), a))
	late, err := c.Open(t.Context())
	require.NoError(t, err)
	a.GoAway()
	eventually(t, "the channel to reconnect", func() bool { return a.Conns() == 5 })

	assert.NoError(t, leastconntest.PingAll(append(streams, late)))
	assert.Equal(t, 7, a.Live())
	eventually(t, "connections without streams to close", func() bool { return a.OpenConns() == 3 })

	require.NoError(t, leastconntest.EndAll(append(streams, late)))
	eventually(t, "drained connections to close", func() bool { return a.OpenConns() == 1 })
}

func TestNodeStopsAndRestarts(t *testing.T) {
	a := startNodes(t, leastconntest.Options{}, "a")[0]
	c := dial(t, a)
	plain, err := c.Open(t.Context())
	require.NoError(t, err)
	a.GoAway()
	eventually(t, "the channel to reconnect", func() bool { return a.Conns() == 2 })

	a.Stop()
	assert.Equal(t, codes.Unavailable, status.Code(plain.Wait()), "a draining stream breaks as well")
	assert.Zero(t, a.Live())
	assert.Zero(t, a.OpenConns())
	_, err = net.Dial("tcp", a.Addr())
	assert.Error(t, err, "the port refuses")
	a.Stop()
	a.GoAway()

	addr := a.Addr()
	require.NoError(t, a.Restart())
	assert.Equal(t, addr, a.Addr())
	require.NoError(t, c.WaitServed(t.Context(), a))
	require.NoError(t, a.Restart(), "a running node restarts as well")
	require.NoError(t, c.WaitServed(t.Context(), a))

	a.Close()
	assert.Error(t, a.Restart())
}

func TestNodeStopWaitsForHandlers(t *testing.T) {
	a := startNodes(t, leastconntest.Options{}, "a")[0]
	for range 10 {
		_, err := dial(t, a).OpenTogether(t.Context(), 200)
		require.NoError(t, err)
		a.Stop()
		require.Zero(t, a.Live())
		require.NoError(t, a.Restart())
	}
}

// A node in service is up while its port is: no connection attempt may fail between the two servers of a GoAway.
func TestNodeGoAwayNeverRefuses(t *testing.T) {
	a := startNodes(t, leastconntest.Options{}, "a")[0]
	stop := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		defer close(failed)
		for {
			select {
			case <-stop:
				return
			default:
			}
			conn, err := net.Dial("tcp", a.Addr())
			if err != nil {
				failed <- err
				return
			}
			_ = conn.(*net.TCPConn).SetLinger(0) // which leaves its port to others
			conn.Close()
		}
	}()
	for range 100 {
		a.GoAway()
	}
	close(stop)
	assert.NoError(t, <-failed)
}

func TestNodeHealth(t *testing.T) {
	nodes := startNodes(t, leastconntest.Options{}, "a", "b")
	c, err := leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: `{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":""}}`,
		Endpoints:     leastconntest.Endpoints(nodes...),
	})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.WaitServed(t.Context(), nodes...))
	before := nodes[1].Started()

	nodes[0].SetServing(false)
	eventually(t, "ten answers in a row from b", func() bool {
		for range 10 {
			if node, err := c.Unary(t.Context()); err != nil || node != "b" {
				return false
			}
		}
		return true
	})
	assert.Zero(t, nodes[0].Live(), "health watches are not counted")
	assert.Greater(t, nodes[1].Started(), before)

	nodes[0].SetServing(true)
	assert.NoError(t, c.WaitServed(t.Context(), nodes...))
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b")
	require.NoError(t, err)
	c, err := leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: roundRobin,
		Endpoints:     leastconntest.Endpoints(nodes...),
	})
	require.NoError(t, err)
	require.NoError(t, c.WaitServed(t.Context(), nodes...))
	_, err = c.OpenN(t.Context(), 4)
	require.NoError(t, err)
	nodes[0].GoAway()
	nodes[1].Stop()

	leastconntest.CloseNodes(nodes...)
	leastconntest.CloseNodes(nodes...)
	require.NoError(t, c.Close())
	eventually(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
}

package leastconntest_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

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

func TestStartNodesStartsAllOrNone(t *testing.T) {
	before := runtime.NumGoroutine()
	taken := startNodes(t, leastconntest.Options{}, "taken")[0]
	_, err := leastconntest.StartNodes(leastconntest.Options{Addr: taken.Addr()}, "other")
	require.Error(t, err)
	taken.Close()
	_, err = leastconntest.StartNodes(leastconntest.Options{Addr: taken.Addr()}, "first", "second")
	require.Error(t, err, "two nodes cannot have one port")
	eventually(t, "the first node to be closed again", func() bool { return runtime.NumGoroutine() <= before })
}

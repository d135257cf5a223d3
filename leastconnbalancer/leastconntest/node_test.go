package leastconntest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

const roundRobin = `{"loadBalancingConfig":[{"round_robin":{}}]}`

func startNodes(t *testing.T, opts leastconntest.Options, names ...string) []*leastconntest.Node {
	t.Helper()
	nodes, err := leastconntest.StartNodes(opts, names...)
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(nodes...) })
	return nodes
}

func dial(t *testing.T, nodes ...*leastconntest.Node) *leastconntest.Channel {
	t.Helper()
	c, err := leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: roundRobin,
		Endpoints:     leastconntest.Endpoints(nodes...),
	})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.NoError(t, leastconntest.WaitFor(t.Context(), what, condition))
}

func TestNodeCountsWhatItHandles(t *testing.T) {
	a := startNodes(t, leastconntest.Options{}, "a")[0]
	c := dial(t, a)

	streams, err := c.OpenN(t.Context(), 3)
	require.NoError(t, err)
	node, err := c.Unary(t.Context())
	require.NoError(t, err)

	assert.Equal(t, "a", node)
	assert.Equal(t, 3, a.Live())
	assert.Equal(t, 3, a.LiveOf(leastconntest.Bidi))
	assert.Equal(t, 3, a.HeldStreams())
	assert.Equal(t, 4, a.Started())
	assert.Equal(t, 1, a.StartedOf(leastconntest.Unary))
	assert.Equal(t, 1, a.Conns())
	assert.Equal(t, 1, a.OpenConns())

	require.NoError(t, streams[0].End())
	assert.Equal(t, 2, a.Live(), "a stream that was read to its end is counted out")
	streams[1].Cancel()
	require.NoError(t, a.WaitLive(t.Context(), 1))

	require.NoError(t, c.Close())
	require.NoError(t, a.WaitLive(t.Context(), 0))
	eventually(t, "the connection to close", func() bool { return a.OpenConns() == 0 })
	assert.Equal(t, 1, a.Conns())
}

func TestNodeFailsAndRecovers(t *testing.T) {
	a := startNodes(t, leastconntest.Options{Fail: codes.Aborted}, "a")[0]
	c := dial(t, a)

	_, err := c.Unary(t.Context())
	assert.Equal(t, codes.Aborted, status.Code(err))
	_, err = c.Open(t.Context())
	assert.Equal(t, codes.Aborted, status.Code(err))
	assert.Equal(t, 2, a.Started())
	assert.Zero(t, a.Live())

	a.SetFail(codes.OK)
	_, err = c.Unary(t.Context())
	assert.NoError(t, err)
}

func TestNodeDelaysUnary(t *testing.T) {
	a := startNodes(t, leastconntest.Options{Delay: time.Hour}, "a")[0]
	c := dial(t, a)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Unary(ctx)
		done <- err
	}()
	require.NoError(t, a.WaitLive(t.Context(), 1))
	cancel()
	assert.Equal(t, codes.Canceled, status.Code(<-done))
	require.NoError(t, a.WaitLive(t.Context(), 0))

	a.SetDelay(0)
	_, err := c.Unary(t.Context())
	assert.NoError(t, err)
}

func TestNodeHoldsUnary(t *testing.T) {
	a := startNodes(t, leastconntest.Options{}, "a")[0]
	c := dial(t, a)
	call := func(answers chan<- error) {
		_, err := c.Unary(t.Context())
		answers <- err
	}
	answers := make(chan error, 3)

	a.HoldUnary(true)
	go call(answers)
	go call(answers)
	require.NoError(t, a.WaitLive(t.Context(), 2))
	a.ReleaseUnary()
	assert.NoError(t, <-answers)
	assert.NoError(t, <-answers)

	go call(answers)
	require.NoError(t, a.WaitLive(t.Context(), 1), "later ones wait as well")
	a.HoldUnary(false)
	assert.NoError(t, <-answers)
	_, err := c.Unary(t.Context())
	assert.NoError(t, err)
}

func TestNodeEndsAndFailsStreams(t *testing.T) {
	a := startNodes(t, leastconntest.Options{}, "a")[0]
	c := dial(t, a)

	ended, err := c.OpenN(t.Context(), 2)
	require.NoError(t, err)
	a.EndStreams()
	for _, s := range ended {
		assert.NoError(t, s.Wait())
	}

	failed, err := c.Open(t.Context())
	require.NoError(t, err)
	a.FailStreams(codes.DataLoss)
	assert.Equal(t, codes.DataLoss, status.Code(failed.Wait()))

	kept, err := c.Open(t.Context())
	require.NoError(t, err)
	assert.NoError(t, kept.Ping(), "a stream opened afterwards goes on")
	assert.Equal(t, 1, a.Live())
}

func TestNodeSurvivesPanics(t *testing.T) {
	a := startNodes(t, leastconntest.Options{Panic: true}, "a")[0]
	c := dial(t, a)

	_, err := c.Unary(t.Context())
	assert.Equal(t, codes.Internal, status.Code(err))
	s, err := c.Open(t.Context())
	require.NoError(t, err, "the handler panics after its acknowledgement")
	assert.Equal(t, codes.Internal, status.Code(s.Wait()))
	assert.Zero(t, a.Live())

	a.SetPanic(false)
	_, err = c.Unary(t.Context())
	assert.NoError(t, err)
}

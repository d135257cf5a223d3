package leastconntest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

func TestChannelFollowsItsResolver(t *testing.T) {
	nodes := startNodes(t, leastconntest.Options{}, "a", "b", "c")
	c := dial(t, nodes[:2]...)
	require.NoError(t, c.WaitServed(t.Context(), nodes[:2]...))
	streams, err := c.OpenN(t.Context(), 4)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"a": 2, "b": 2}, leastconntest.Counts(streams))

	require.NoError(t, c.UpdateNodes(nodes[2]))
	require.NoError(t, c.WaitServed(t.Context(), nodes[2]))
	eventually(t, "b to be left alone", func() bool {
		node, err := c.Unary(t.Context())
		return err == nil && node == "c"
	})
	assert.NoError(t, leastconntest.PingAll(streams), "streams outlive their endpoint")
	assert.NoError(t, leastconntest.EndAll(streams))
}

func TestChannelReportsWhatThePolicySays(t *testing.T) {
	nodes := startNodes(t, leastconntest.Options{}, "a")
	c := dial(t, nodes...)
	assert.NoError(t, c.Update(), "an unused channel has no policy to ask")
	require.NoError(t, c.UpdateNodes(nodes...))
	c.Connect()

	assert.ErrorIs(t, c.Update(), balancer.ErrBadResolverState)
	assert.NoError(t, c.UpdateNodes(nodes...))
	assert.NoError(t, c.WaitServed(t.Context(), nodes...))
}

func TestOpenTogether(t *testing.T) {
	nodes := startNodes(t, leastconntest.Options{}, "a", "b")
	c := dial(t, nodes...)
	require.NoError(t, c.WaitServed(t.Context(), nodes...))
	streams, err := c.OpenTogether(t.Context(), 100)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"a": 50, "b": 50}, leastconntest.Counts(streams))
	assert.Equal(t, 50, nodes[0].Live())

	nodes[1].SetFail(codes.Aborted)
	more, err := c.OpenTogether(t.Context(), 10)
	assert.Error(t, err)
	assert.Equal(t, map[string]int{"a": 5}, leastconntest.Counts(more))
	leastconntest.CancelAll(append(streams, more...))
	require.NoError(t, nodes[0].WaitLive(t.Context(), 0))
	require.NoError(t, nodes[1].WaitLive(t.Context(), 0))
}

func TestWaitServedGivesUp(t *testing.T) {
	nodes := startNodes(t, leastconntest.Options{}, "a", "b")
	c := dial(t, nodes[0])
	require.NoError(t, c.WaitServed(t.Context(), nodes[0]))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := c.WaitServed(ctx, nodes...)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "a connection to node b")

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	before := nodes[0].Started()
	go func() {
		_ = leastconntest.WaitFor(ctx, "an answer from a", func() bool { return nodes[0].Started() > before+1 })
		cancel()
	}()
	assert.ErrorContains(t, c.WaitAnswered(ctx, "a", "b"), "none from b")
}

func TestWaitForGivesUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	err := leastconntest.WaitFor(ctx, "a miracle", func() bool { return false })
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "a miracle")
}

// The four kinds of RPC are held, counted by kind, and ended by the node.
func TestEveryKindOfRPC(t *testing.T) {
	a := startNodes(t, leastconntest.Options{}, "a")[0]
	client := dial(t, a).Client()

	input, err := client.StreamingInputCall(t.Context())
	require.NoError(t, err)
	header, err := input.Header()
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, header.Get(leastconntest.NodeHeader))
	output, err := client.StreamingOutputCall(t.Context(), &grpc_testing.StreamingOutputCallRequest{})
	require.NoError(t, err)
	_, err = output.Recv()
	require.NoError(t, err)
	assert.Equal(t, 1, a.LiveOf(leastconntest.ClientStream))
	assert.Equal(t, 1, a.LiveOf(leastconntest.ServerStream))

	require.NoError(t, input.Send(&grpc_testing.StreamingInputCallRequest{}))
	_, err = input.CloseAndRecv()
	assert.NoError(t, err)
	a.FailStreams(codes.OutOfRange)
	_, err = output.Recv()
	assert.Equal(t, codes.OutOfRange, status.Code(err))
	assert.Zero(t, a.Live())
}

package leastconnbalancer_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// everyStream are the test service's methods that stream.
var everyStream = []string{
	grpc_testing.TestService_FullDuplexCall_FullMethodName,
	grpc_testing.TestService_StreamingOutputCall_FullMethodName,
	grpc_testing.TestService_StreamingInputCall_FullMethodName,
}

// moving is how to dial with MoveStreams.
func moving(config string, methods ...string) leastconntest.ChannelConfig {
	return leastconntest.ChannelConfig{
		ServiceConfig: selecting(config),
		DialOptions:   []grpc.DialOption{grpc.WithChainStreamInterceptor(leastconnbalancer.MoveStreams(methods...))},
	}
}

// 120 streams of a program that opens each again when it is unavailable; a fourth
// node joins.
func TestMoveStreamsWithALoop(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c", "d")
	c := e.dialWith(moving(`{"rebalance":{"perSecond":50,"minAge":"0s"}}`, everyStream...), ns[:3]...)
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	var unavailable atomic.Int64
	failed := make(chan error, 120)
	var holding sync.WaitGroup
	for range 120 {
		holding.Go(func() {
			for ctx.Err() == nil {
				st, err := c.Open(ctx)
				if err == nil {
					err = st.Wait()
				}
				if ctx.Err() == nil && codeOf(err) != codes.Unavailable {
					failed <- fmt.Errorf("a stream has ended: %w", err)
					return
				}
				unavailable.Add(1)
			}
		})
	}
	e.served(ns, 40, 40, 40, 0)
	c.update(ns...)
	e.served(ns, 30, 30, 30, 30)
	require.EqualValues(t, 30, unavailable.Load(), "streams that were told to move")
	require.Empty(t, failed)
	cancel()
	holding.Wait()
	require.Empty(t, failed)
}

// What a program sees of a stream that moves, by its kind.
func TestMoveStreamsByKind(t *testing.T) {
	t.Run("bidirectional", func(t *testing.T) {
		e := parallelEnv(t)
		c, nodes := e.countingWith(everyStream...)
		call, err := c.Client().FullDuplexCall(e.ctx)
		require.NoError(t, err)
		require.NoError(t, call.Send(&grpc_testing.StreamingOutputCallRequest{}))
		seen := receiveUntil(t, call, func() { c.drain(nodes, nodes[0]) })
		require.GreaterOrEqual(t, seen, uint64(12), "the numbers that the node sends after the half-close")
		e.wait("the node to see the end", func() bool { return nodes[0].live.Load() == 0 })
		require.Zero(t, nodes[0].cut.Load(), "streams that were cut")
		require.Equal(t, io.EOF, call.Send(&grpc_testing.StreamingOutputCallRequest{}))
		require.NoError(t, call.CloseSend())
		_, err = call.Recv()
		require.Error(t, err)
	})
	t.Run("bidirectional, half-closed by the program", func(t *testing.T) {
		e := parallelEnv(t)
		c, nodes := e.countingWith(everyStream...)
		nodes[0].deaf = true
		call, err := c.Client().FullDuplexCall(e.ctx)
		require.NoError(t, err)
		require.NoError(t, call.Send(&grpc_testing.StreamingOutputCallRequest{}))
		require.NoError(t, call.CloseSend())
		receiveUntil(t, call, func() { c.drain(nodes, nodes[0]) })
		e.wait("the node to see the end", func() bool { return nodes[0].cut.Load() == 1 })
	})
	t.Run("bidirectional, and its server does not end it", func(t *testing.T) {
		e := parallelEnv(t)
		c, nodes := e.countingWith(everyStream...)
		nodes[0].deaf = true
		call, err := c.Client().FullDuplexCall(e.ctx)
		require.NoError(t, err)
		require.NoError(t, call.Send(&grpc_testing.StreamingOutputCallRequest{}))
		begun := time.Now()
		receiveUntil(t, call, func() { c.drain(nodes, nodes[0]) })
		require.GreaterOrEqual(t, time.Since(begun), 5*time.Second, "it has as long to end it")
		e.wait("the node to see the end", func() bool { return nodes[0].cut.Load() == 1 })
	})
	t.Run("bidirectional, cancelled by the program meanwhile", func(t *testing.T) {
		e := parallelEnv(t)
		c, nodes := e.countingWith(everyStream...)
		nodes[0].deaf = true
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		call, err := c.Client().FullDuplexCall(ctx)
		require.NoError(t, err)
		require.NoError(t, call.Send(&grpc_testing.StreamingOutputCallRequest{}))
		e.wait("the node to have it", func() bool { return nodes[0].live.Load() == 1 })
		c.drain(nodes, nodes[0])
		e.wait("the stream to be half-closed", func() bool { return call.Send(&grpc_testing.StreamingOutputCallRequest{}) == io.EOF })
		cancel()
		for err == nil {
			_, err = call.Recv()
		}
		require.Equal(t, codes.Canceled, codeOf(err))
	})
	t.Run("server", func(t *testing.T) {
		e := parallelEnv(t)
		c, nodes := e.countingWith(everyStream...)
		call, err := c.Client().StreamingOutputCall(e.ctx, &grpc_testing.StreamingOutputCallRequest{})
		require.NoError(t, err)
		receiveUntil(t, call, func() { c.drain(nodes, nodes[0]) })
		e.wait("the node to see the end", func() bool { return nodes[0].live.Load() == 0 })
	})
	t.Run("client", func(t *testing.T) {
		e := parallelEnv(t)
		ns := e.nodes("a", "b")
		c := e.dialWith(moving(atOnce, everyStream...), ns[:1]...)
		call, err := c.Client().StreamingInputCall(e.ctx)
		require.NoError(t, err)
		require.NoError(t, ns[0].WaitLive(e.ctx, 1))
		c.update(ns[1])
		require.NoError(t, ns[0].WaitLive(e.ctx, 0))
		_, err = call.CloseAndRecv()
		requireMoved(t, err)
	})
	t.Run("other methods", func(t *testing.T) {
		e := parallelEnv(t)
		ns := e.nodes("a", "b")
		c := e.dialWith(moving(atOnce, everyStream[1]), ns[:1]...)
		st, err := c.Open(e.ctx)
		require.NoError(t, err)
		named, err := c.Client().StreamingOutputCall(e.ctx, &grpc_testing.StreamingOutputCallRequest{})
		require.NoError(t, err)
		_, err = named.Recv()
		require.NoError(t, err)
		c.update(ns[1])
		_, err = named.Recv()
		requireMoved(t, err)
		require.NoError(t, st.Ping())
		require.NoError(t, st.End())
	})
}

// The next stream of the method takes the place that was kept, whichever node has the
// fewest by then, and though the first attempt to open it has failed.
func TestMoveStreamsHandsOnThePlace(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	c := e.dialWith(moving(atOnce, everyStream...), ns[:1]...)
	open := func() *leastconntest.Stream {
		st, err := c.Open(e.ctx)
		require.NoError(t, err)
		return st
	}
	st := open()
	c.update(ns...)
	other := open() // on b or c: so the place is kept on the other one
	require.NoError(t, c.Update(lcresolver.SetWeight(ns[0].Endpoint(), 0), ns[1].Endpoint(), ns[2].Endpoint()))
	requireMoved(t, st.Wait())
	require.NoError(t, other.End())
	ended, cancel := context.WithCancel(e.ctx)
	cancel()
	_, err := c.Open(ended)
	require.Equal(t, codes.Canceled, codeOf(err))
	require.NotEqual(t, other.Node(), open().Node())
	require.Equal(t, other.Node(), open().Node())
}

// A program's own ends of streams stay what they are.
func TestMoveStreamsLeavesOtherEnds(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b")
	c := e.dialWith(moving(atOnce, everyStream...), ns[:1]...)
	open := func() *leastconntest.Stream {
		st, err := c.Open(e.ctx)
		require.NoError(t, err)
		return st
	}
	require.NoError(t, open().End())
	st := open()
	ns[0].FailStreams(codes.NotFound)
	require.Equal(t, codes.NotFound, codeOf(st.Wait()))
	st = open()
	ns[0].EndStreams()
	require.NoError(t, st.Wait())
	ctx, cancel := context.WithCancel(e.ctx)
	st, err := c.Open(ctx)
	require.NoError(t, err)
	cancel()
	require.Equal(t, codes.Canceled, codeOf(st.Wait()))
	ns[0].SetFail(codes.DataLoss)
	_, err = c.Open(e.ctx)
	require.Equal(t, codes.DataLoss, codeOf(err))
}

func TestMoveStreamsSaysWhatIsWrong(t *testing.T) {
	for want, methods := range map[string][]string{
		`least_conn: MoveStreams: no method, want full names such as "/pkg.Service/Method"`:                    nil,
		`least_conn: MoveStreams: method "", want a full name such as "/pkg.Service/Method"`:                   {everyStream[0], ""},
		`least_conn: MoveStreams: method "pkg.Service/Method", want a full name such as "/pkg.Service/Method"`: {"pkg.Service/Method"},
		`least_conn: MoveStreams: method "/Method", want a full name such as "/pkg.Service/Method"`:            {"/Method"},
		`least_conn: MoveStreams: method "/a/b/c", want a full name such as "/pkg.Service/Method"`:             {"/a/b/c"},
	} {
		conn, err := leastconntest.Dial(moving(`{}`, methods...))
		require.NoError(t, err)
		_, err = conn.Open(t.Context())
		require.Equal(t, status.Error(codes.Internal, want).Error(), err.Error())
		require.NoError(t, conn.Close())
	}
}

// countingWith starts two nodes that count, of which the second is drained, and a
// channel with MoveStreams.
func (e *env) countingWith(methods ...string) (*channel, []*numbers) {
	e.Helper()
	nodes := []*numbers{e.counting(&numbers{}), e.counting(&numbers{})}
	c := e.unused(moving(atOnce, methods...))
	c.drain(nodes, nodes[1])
	c.Connect()
	c.waitCounting(nodes...)
	return c, nodes
}

// receiveUntil receives numbers, has the stream move after ten, and returns the last
// one before it does.
func receiveUntil(t *testing.T, call interface {
	Recv() (*numberResponse, error)
}, move func()) (last uint64) {
	t.Helper()
	for {
		m, err := call.Recv()
		if err != nil {
			requireMoved(t, err)
			return last
		}
		n := number(m.GetPayload())
		require.Equal(t, last+1, n)
		if last = n; n == 10 {
			move()
		}
	}
}

func requireMoved(t *testing.T, err error) {
	t.Helper()
	require.Equal(t, status.Error(codes.Unavailable, "least_conn: the stream should move to another endpoint: open it again").Error(), fmt.Sprint(err))
}

package leastconnbalancer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

type numberResponse = grpc_testing.StreamingOutputCallResponse

// follower counts along with nodes that count.
type follower struct {
	channel *channel
	opened  atomic.Int64
}

func (f *follower) open(ctx context.Context, last *numberResponse) (grpc.ServerStreamingClient[numberResponse], error) {
	f.opened.Add(1)
	return f.channel.Client().StreamingOutputCall(ctx, &grpc_testing.StreamingOutputCallRequest{Payload: last.GetPayload()})
}

// follow calls each for each number, and fails where one is lost or comes again.
func (f *follower) follow(ctx context.Context, each func(n uint64) error) error {
	var seen uint64
	return leastconnbalancer.Follow(ctx, f.open, func(m *numberResponse) error {
		n := number(m.GetPayload())
		if n != seen+1 {
			return fmt.Errorf("%d comes after %d", n, seen)
		}
		seen = n
		return each(n)
	})
}

// countingNodes starts nodes that count to last, if that is not 0, and a channel to
// the first of them.
func (e *env) countingNodes(config string, last uint64, listed, all int) (*channel, []*numbers) {
	e.Helper()
	var nodes []*numbers
	for range all {
		nodes = append(nodes, e.counting(&numbers{last: last}))
	}
	c := e.unused(leastconntest.ChannelConfig{ServiceConfig: selecting(config), Endpoints: countingEndpoints(nodes)[:listed]})
	c.Connect()
	c.waitCounting(nodes[:listed]...)
	return c, nodes
}

func countingEndpoints(nodes []*numbers) (eps []resolver.Endpoint) {
	for _, n := range nodes {
		eps = append(eps, n.endpoint())
	}
	return eps
}

func (c *channel) waitCounting(nodes ...*numbers) {
	c.env.Helper()
	for _, n := range nodes {
		c.env.wait("a node is ready", func() bool { return c.readyMembers(n.addr) > 0 })
	}
}

// drain lets a node's streams move at once.
func (c *channel) drain(nodes []*numbers, drained ...*numbers) {
	c.env.Helper()
	eps := countingEndpoints(nodes)
	for i, n := range nodes {
		for _, d := range drained {
			if n == d {
				eps[i] = lcresolver.SetWeight(eps[i], 0)
			}
		}
	}
	require.NoError(c.env, c.Update(eps...))
}

const atOnce = `{"rebalance":{"drainWithin":"0s"}}`

// 120 streams of numbers over three nodes, a fourth one joins.
func TestFollowLosesNothing(t *testing.T) {
	e := parallelEnv(t)
	c, nodes := e.countingNodes(`{"rebalance":{"perSecond":50,"minAge":"0s"}}`, 0, 3, 4)
	f := &follower{channel: c}
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	failed := make(chan error, 120)
	var following sync.WaitGroup
	for range 120 {
		following.Go(func() {
			if err := f.follow(ctx, func(uint64) error { return nil }); ctx.Err() == nil {
				failed <- err
			}
		})
	}
	level := func(want ...int64) {
		t.Helper()
		e.wait(fmt.Sprint("streams by node: ", want), func() bool {
			for i, n := range want {
				if nodes[i].live.Load() != n {
					return false
				}
			}
			return true
		})
		require.Empty(t, failed)
	}
	level(40, 40, 40, 0)
	require.NoError(t, c.Update(countingEndpoints(nodes)...))
	level(30, 30, 30, 30)
	require.EqualValues(t, 120+30, f.opened.Load(), "RPCs")
	cancel()
	following.Wait()
	require.Empty(t, failed)
}

// A stream that moves again and again loses nothing.
func TestFollowMovesOften(t *testing.T) {
	e := parallelEnv(t)
	c, nodes := e.countingNodes(atOnce, 0, 2, 2)
	f := &follower{channel: c}
	errEnough := errors.New("enough")
	require.ErrorIs(t, f.follow(e.ctx, func(n uint64) error {
		if n == 330 {
			return errEnough
		}
		if n%50 == 0 {
			at := nodes[0]
			if at.live.Load() == 0 {
				at = nodes[1]
			}
			c.drain(nodes, at)
			e.wait("the stream to be ended", func() bool { return at.live.Load() == 0 })
		}
		return nil
	}), errEnough)
	require.EqualValues(t, 1+6, f.opened.Load(), "RPCs")
}

// How Follow ends.
func TestFollowEnds(t *testing.T) {
	errHandled, errOpened := errors.New("enough"), errors.New("not now")
	ignore := func(uint64) error { return nil }
	t.Run("with the stream", func(t *testing.T) {
		e := parallelEnv(t)
		c, _ := e.countingNodes(atOnce, 5, 1, 1)
		seen := uint64(0)
		require.NoError(t, (&follower{channel: c}).follow(e.ctx, func(n uint64) error { seen = n; return nil }))
		require.EqualValues(t, 5, seen)
	})
	t.Run("with the server's error", func(t *testing.T) {
		e := parallelEnv(t)
		c, nodes := e.countingNodes(atOnce, 0, 1, 1)
		nodes[0].fail.Store(5)
		require.Equal(t, codes.FailedPrecondition, codeOf((&follower{channel: c}).follow(e.ctx, ignore)))
	})
	t.Run("with the error of handle, also when the stream should move", func(t *testing.T) {
		e := parallelEnv(t)
		c, nodes := e.countingNodes(atOnce, 0, 1, 2)
		f := &follower{channel: c}
		require.ErrorIs(t, f.follow(e.ctx, func(n uint64) error {
			if n < 5 {
				return nil
			}
			require.NoError(t, c.Update(countingEndpoints(nodes)...))
			c.waitCounting(nodes[1])
			c.drain(nodes, nodes[0])
			e.wait("the stream to be told", func() bool { return nodes[0].live.Load() == 0 })
			return errHandled
		}), errHandled)
		require.EqualValues(t, 1, f.opened.Load(), "RPCs")
	})
	t.Run("with the error of open", func(t *testing.T) {
		require.ErrorIs(t, leastconnbalancer.Follow(t.Context(), func(context.Context, *numberResponse) (grpc.ServerStreamingClient[numberResponse], error) {
			return nil, errOpened
		}, func(*numberResponse) error { return nil }), errOpened)
	})
	t.Run("with its context", func(t *testing.T) {
		e := parallelEnv(t)
		c, nodes := e.countingNodes(atOnce, 0, 1, 1)
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		require.Equal(t, codes.Canceled, codeOf((&follower{channel: c}).follow(ctx, func(n uint64) error {
			if n == 5 {
				cancel()
			}
			return nil
		})))
		e.wait("the stream to end", func() bool { return nodes[0].live.Load() == 0 })
	})
}

// A server may end a stream that is to move just as the program's context ends.
func TestFollowEndsWhileItsStreamMoves(t *testing.T) {
	e := parallelEnv(t)
	c, nodes := e.countingNodes(atOnce, 0, 2, 2)
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	f := &follower{channel: c}
	open := func(ctx context.Context, last *numberResponse) (grpc.ServerStreamingClient[numberResponse], error) {
		stream, err := f.open(ctx, last)
		return &endedStream{ServerStreamingClient: stream, program: cancel}, err
	}
	require.Equal(t, codes.Canceled, codeOf(leastconnbalancer.Follow(ctx, open, func(*numberResponse) error {
		at := nodes[0]
		if at.live.Load() == 0 {
			at = nodes[1]
		}
		c.drain(nodes, at)
		return nil
	})))
}

// endedStream is a stream whose server has sent one message more, and ended it, by the time
// that it is cancelled to move. The program's context ends then.
type endedStream struct {
	grpc.ServerStreamingClient[numberResponse]
	program context.CancelFunc
	last    bool // the message has been received
}

func (s *endedStream) Recv() (*numberResponse, error) {
	m, err := s.ServerStreamingClient.Recv()
	switch {
	case err == nil:
		return m, nil
	case !s.last:
		s.last = true
		return &numberResponse{}, nil
	}
	s.program()
	return nil, io.EOF
}

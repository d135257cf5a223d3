package leastconnbalancer_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
)

// numbers is a node that counts for its clients: a server stream of numbers, from
// the one after that of the request to the last, if there is one. It can do so in a
// bidirectional stream, too, which it ends when it is half-closed, two numbers later.
type numbers struct {
	grpc_testing.UnimplementedTestServiceServer
	addr string
	last uint64        // 0: none
	fail atomic.Uint64 // the one that it fails at; 0: none
	deaf bool          // it does not end streams that are half-closed
	live atomic.Int64
	cut  atomic.Int64 // bidirectional streams that have not ended well
}

// number reads the one that a message has.
func number(p *grpc_testing.Payload) uint64 {
	if p == nil {
		return 0
	}
	return binary.BigEndian.Uint64(p.Body)
}

func numbered(n uint64) *grpc_testing.Payload {
	return &grpc_testing.Payload{Body: binary.BigEndian.AppendUint64(nil, n)}
}

// counting starts a node.
func (e *env) counting(n *numbers) *numbers {
	e.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(e, err)
	n.addr = listener.Addr().String()
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	grpc_testing.RegisterTestServiceServer(server, n)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	e.Cleanup(func() {
		server.Stop()
		require.NoError(e, <-served)
	})
	return n
}

func (n *numbers) endpoint() resolver.Endpoint {
	return resolver.Endpoint{Addresses: []resolver.Address{{Addr: n.addr}}}
}

func (n *numbers) StreamingOutputCall(from *grpc_testing.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[grpc_testing.StreamingOutputCallResponse]) error {
	n.live.Add(1)
	defer n.live.Add(-1)
	return n.count(stream.Context(), number(from.GetPayload()), nil, stream.Send)
}

func (n *numbers) FullDuplexCall(stream grpc.BidiStreamingServer[grpc_testing.StreamingOutputCallRequest, grpc_testing.StreamingOutputCallResponse]) (err error) {
	n.live.Add(1)
	defer n.live.Add(-1)
	defer func() {
		if err != nil {
			n.cut.Add(1)
		}
	}()
	from, err := stream.Recv()
	if err != nil {
		return err
	}
	closed := make(chan struct{})
	go func() {
		if _, err := stream.Recv(); err == io.EOF && !n.deaf {
			close(closed)
		}
	}()
	return n.count(stream.Context(), number(from.GetPayload()), closed, stream.Send)
}

// count sends a number each millisecond.
func (n *numbers) count(ctx context.Context, from uint64, closed <-chan struct{}, send func(*grpc_testing.StreamingOutputCallResponse) error) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	last := n.last
	for i := from + 1; last == 0 || i <= last; i++ {
		if i == n.fail.Load() {
			return status.Error(codes.FailedPrecondition, "no such number")
		}
		if err := send(&grpc_testing.StreamingOutputCallResponse{Payload: numbered(i)}); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-closed:
			closed, last = nil, i+2
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	return nil
}

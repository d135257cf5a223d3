package integration

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"
	grpcpeer "google.golang.org/grpc/peer"
)

// farm is one server with many addresses, each of which is an endpoint.
type farm struct {
	grpc_testing.UnimplementedTestServiceServer
	addrs []string
	calls atomic.Int64 // unary ones so far

	mu      sync.Mutex
	streams map[string]int // that are open, by address
}

// startFarm starts one with so many addresses, for as long as the test runs.
func startFarm(t *testing.T, addrs int) *farm {
	t.Helper()
	f := &farm{streams: map[string]int{}}
	s := grpc.NewServer()
	grpc_testing.RegisterTestServiceServer(s, f)
	var serving sync.WaitGroup
	for range addrs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		f.addrs = append(f.addrs, l.Addr().String())
		serving.Go(func() { _ = s.Serve(l) }) // it ends with the test
	}
	t.Cleanup(func() {
		s.Stop()
		serving.Wait()
	})
	return f
}

// UnaryCall counts the call.
func (f *farm) UnaryCall(context.Context, *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	f.calls.Add(1)
	return &grpc_testing.SimpleResponse{}, nil
}

// FullDuplexCall counts the stream, tells its client so, and holds it.
func (f *farm) FullDuplexCall(stream grpc_testing.TestService_FullDuplexCallServer) error {
	at, _ := grpcpeer.FromContext(stream.Context())
	count := func(n int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.streams[at.LocalAddr.String()] += n
	}
	count(1)
	defer count(-1)
	if err := stream.Send(&grpc_testing.StreamingOutputCallResponse{}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// open opens a stream, which the farm has counted then.
func (f *farm) open(e *env) (grpc_testing.TestService_FullDuplexCallClient, error) {
	stream, err := grpc_testing.NewTestServiceClient(e.conn).FullDuplexCall(e.ctx)
	if err == nil {
		_, err = stream.Recv()
	}
	return stream, err
}

// held is how many streams each address has.
func (f *farm) held() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := make([]int, len(f.addrs))
	for i, a := range f.addrs {
		held[i] = f.streams[a]
	}
	return held
}

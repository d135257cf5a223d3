package leastconntest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"
)

// Stream is an open bidirectional RPC. The node holds it until End, Cancel, the end of the context it was opened with,
// or the node itself ends it. It is for one goroutine at a time.
type Stream struct {
	node   string
	cancel context.CancelFunc
	call   grpc_testing.TestService_FullDuplexCallClient
}

// Open opens a stream over any connection to Nodes, for channels with a resolver of their own. It is Channel.Open otherwise.
func Open(ctx context.Context, conn grpc.ClientConnInterface, opts ...grpc.CallOption) (*Stream, error) {
	return newStream(ctx, grpc_testing.NewTestServiceClient(conn), opts...)
}

// newStream opens a stream and waits for its acknowledgement.
func newStream(ctx context.Context, client grpc_testing.TestServiceClient, opts ...grpc.CallOption) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	call, err := client.FullDuplexCall(ctx, opts...)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &Stream{cancel: cancel, call: call}
	if _, err := call.Recv(); err != nil {
		cancel()
		return nil, fmt.Errorf("leastconntest: stream was not acknowledged: %w", err)
	}
	header, err := call.Header()
	if err != nil {
		s.Cancel()
		return nil, err
	}
	if names := header.Get(NodeHeader); len(names) == 1 {
		s.node = names[0]
	} else {
		s.Cancel()
		return nil, fmt.Errorf("leastconntest: server sent %d %q headers instead of one: it is no Node", len(names), NodeHeader)
	}
	return s, nil
}

// Node is the name of the node that serves the stream.
func (s *Stream) Node() string { return s.node }

// Context is the context of the RPC.
func (s *Stream) Context() context.Context { return s.call.Context() }

// Ping sends a request and waits for its response, which shows that the stream is alive at both ends.
func (s *Stream) Ping() error {
	// Send reports io.EOF for a stream that has ended; why it did comes with Recv.
	if err := s.call.Send(&grpc_testing.StreamingOutputCallRequest{}); err != nil && err != io.EOF {
		return err
	}
	_, err := s.call.Recv()
	return err
}

// End half-closes the stream and reads it to its end. When it returns, the policy has been told that the RPC is over.
// The error is nil if the node ended the stream with codes.OK.
func (s *Stream) End() error {
	if err := s.call.CloseSend(); err != nil {
		return err
	}
	return s.Wait()
}

// CloseSend half-closes the stream, for which the node ends it. Other than the other methods it may be called while Wait
// runs.
func (s *Stream) CloseSend() error { return s.call.CloseSend() }

// Wait reads the stream to its end without asking for it, for a node that ends or fails its streams. The error is nil
// if the node ended the stream with codes.OK.
func (s *Stream) Wait() error {
	defer s.cancel()
	for {
		if _, err := s.call.Recv(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Cancel cancels the RPC and reads it to its end. When it returns, the policy has been told that the RPC is over; the
// node learns of it a moment later.
func (s *Stream) Cancel() {
	s.cancel()
	_ = s.Wait()
}

// Counts is how many of streams each node serves, by its name.
func Counts(streams []*Stream) map[string]int {
	counts := make(map[string]int)
	for _, s := range streams {
		counts[s.Node()]++
	}
	return counts
}

// PingAll pings each of streams and joins their errors.
func PingAll(streams []*Stream) error { return each(streams, (*Stream).Ping) }

// EndAll ends each of streams and joins their errors.
func EndAll(streams []*Stream) error { return each(streams, (*Stream).End) }

// CancelAll cancels each of streams.
func CancelAll(streams []*Stream) {
	for _, s := range streams {
		s.Cancel()
	}
}

func each(streams []*Stream, do func(*Stream) error) error {
	var errs []error
	for i, s := range streams {
		if err := do(s); err != nil {
			errs = append(errs, fmt.Errorf("stream %d on node %s: %w", i, s.Node(), err))
		}
	}
	return errors.Join(errs...)
}

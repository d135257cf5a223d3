package leastconntest

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// NodeHeader is the response header in which a node names itself.
const NodeHeader = "node"

// service answers grpc.testing.TestService for a node.
type service struct {
	grpc_testing.UnimplementedTestServiceServer
	node *Node
}

func (s service) header() metadata.MD { return metadata.Pairs(NodeHeader, s.node.Name()) }

// UnaryCall names the node, after the delay and hold that are set, and sends as many bytes as are asked for.
func (s service) UnaryCall(ctx context.Context, request *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	if err := grpc.SetHeader(ctx, s.header()); err != nil {
		return nil, err
	}
	if err := s.node.delayUnary(ctx); err != nil {
		return nil, err
	}
	s.node.panicIfSet()
	response := &grpc_testing.SimpleResponse{Username: s.node.Name()}
	if size := request.GetResponseSize(); size > 0 {
		response.Payload = &grpc_testing.Payload{Body: make([]byte, size)}
	}
	return response, nil
}

// StreamingOutputCall sends one response and holds the stream until the node or the client ends it.
func (s service) StreamingOutputCall(_ *grpc_testing.StreamingOutputCallRequest, stream grpc_testing.TestService_StreamingOutputCallServer) error {
	end := s.node.currentStreamEnd()
	if err := s.acknowledge(stream, stream.Send); err != nil {
		return err
	}
	select {
	case <-end.announced:
		return end.err
	case <-stream.Context().Done():
		return status.FromContextError(stream.Context().Err()).Err()
	}
}

// StreamingInputCall reads until the client half-closes or the node or the client ends the stream. It sends its header
// at once, so that a client can wait for it.
func (s service) StreamingInputCall(stream grpc_testing.TestService_StreamingInputCallServer) error {
	end := s.node.currentStreamEnd()
	if err := stream.SendHeader(s.header()); err != nil {
		return err
	}
	s.node.panicIfSet()
	err := serveRequests(s.node, stream.Context(), end, stream.Recv, func(*grpc_testing.StreamingInputCallRequest) error {
		return nil
	})
	if err != errHalfClosed {
		return err
	}
	return stream.SendAndClose(&grpc_testing.StreamingInputCallResponse{})
}

// FullDuplexCall acknowledges the stream with an empty response, then answers each request with one, until the client
// half-closes or the node or the client ends the stream.
func (s service) FullDuplexCall(stream grpc_testing.TestService_FullDuplexCallServer) error {
	end := s.node.currentStreamEnd()
	if err := s.acknowledge(stream, stream.Send); err != nil {
		return err
	}
	err := serveRequests(s.node, stream.Context(), end, stream.Recv, func(*grpc_testing.StreamingOutputCallRequest) error {
		return stream.Send(&grpc_testing.StreamingOutputCallResponse{})
	})
	if err != errHalfClosed {
		return err
	}
	return nil
}

// acknowledge tells the client that the stream is held, and by whom.
func (s service) acknowledge(stream grpc.ServerStream, send func(*grpc_testing.StreamingOutputCallResponse) error) error {
	if err := stream.SetHeader(s.header()); err != nil {
		return err
	}
	if err := send(&grpc_testing.StreamingOutputCallResponse{}); err != nil {
		return err
	}
	s.node.panicIfSet()
	return nil
}

var errHalfClosed = errors.New("leastconntest: client has half-closed")

// serveRequests answers requests until the stream ends, and says why it did: errHalfClosed, what the node was told, or
// the stream's error.
func serveRequests[T any](n *Node, ctx context.Context, end *streamEnd, recv func() (T, error), answer func(T) error) error {
	type received struct {
		request T
		err     error
	}
	incoming := make(chan received)
	// Only the end of the handler unblocks its Recv, so the goroutine outlives the handler by a moment.
	n.background.Go(func() {
		for {
			request, err := recv()
			select {
			case incoming <- received{request, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
	for {
		select {
		case r := <-incoming:
			if r.err == io.EOF {
				return errHalfClosed
			}
			if r.err != nil {
				return r.err
			}
			if err := answer(r.request); err != nil {
				return err
			}
		case <-end.announced:
			return end.err
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// interceptUnary counts RPCs of the test service, fails them if told to, and turns a handler's panic into a status.
func (n *Node) interceptUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	if !counted(info.FullMethod) {
		return handler(ctx, req)
	}
	defer n.rpcs.enter(Unary)()
	defer recovered(&err)
	if err := n.refusal(); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// interceptStream is interceptUnary for streams.
func (n *Node) interceptStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	if !counted(info.FullMethod) {
		return handler(srv, stream)
	}
	kind := Bidi
	switch {
	case !info.IsClientStream:
		kind = ServerStream
	case !info.IsServerStream:
		kind = ClientStream
	}
	defer n.rpcs.enter(kind)()
	defer recovered(&err)
	if err := n.refusal(); err != nil {
		return err
	}
	return handler(srv, stream)
}

// counted leaves out the health service, whose Watch streams are the channel's own.
func counted(method string) bool {
	return strings.HasPrefix(method, "/"+grpc_testing.TestService_ServiceDesc.ServiceName+"/")
}

// recovered is deferred: it replaces the error of a handler that panicked.
func recovered(err *error) {
	if cause := recover(); cause != nil {
		*err = status.Errorf(codes.Internal, "leastconntest: handler panicked: %v", cause)
	}
}

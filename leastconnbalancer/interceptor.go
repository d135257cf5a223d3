package leastconnbalancer

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/picker"
)

// UnaryClientInterceptor returns an interceptor that guarantees that a retry
// goes to another endpoint than the attempts before it, as long as there is one
// that is ready.
//
// Without it the policy recognises the attempts of an RPC by itself, by means
// that gRPC does not promise. The interceptor is for those who want the
// guarantee, for retry middleware that makes several RPCs of one, and for
// streams: a failure that gRPC sees while it sends is hidden from the policy. And
// with it the error of an RPC whose deadline ends its wait for room says so.
//
// It must be the outer one: before any retry middleware in the chain, so that
// all attempts are made inside it.
func UnaryClientInterceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx, record := picker.WithRecord(ctx)
		return explain(invoker(ctx, method, req, reply, cc, opts...), record)
	}
}

// StreamClientInterceptor is [UnaryClientInterceptor] for streams. It, too, goes
// before any retry middleware.
func StreamClientInterceptor() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx, record := picker.WithRecord(ctx)
		s, err := streamer(ctx, desc, cc, method, opts...)
		if err != nil {
			return nil, explain(err, record)
		}
		return explained{s, record}, nil
	}
}

// explain says in the error of an RPC whose deadline has ended its wait for room what
// it waited for, and how long. gRPC takes it to wait for connections.
func explain(err error, record *picker.Record) error {
	if err == nil || status.Code(err) != codes.DeadlineExceeded {
		return err
	}
	waited, waits := record.Waiting()
	if !waits {
		return err
	}
	return status.Errorf(codes.DeadlineExceeded,
		"least_conn: the deadline was exceeded after %v of waiting for room: the endpoints that the RPC may use are full (maxInFlight, or the servers' limits of streams)", waited.Round(time.Millisecond))
}

// explained is a stream whose later attempts may have to wait for room, too.
type explained struct {
	grpc.ClientStream
	record *picker.Record
}

func (s explained) Header() (metadata.MD, error) {
	md, err := s.ClientStream.Header()
	return md, explain(err, s.record)
}

func (s explained) SendMsg(m any) error { return explain(s.ClientStream.SendMsg(m), s.record) }

func (s explained) RecvMsg(m any) error { return explain(s.ClientStream.RecvMsg(m), s.record) }

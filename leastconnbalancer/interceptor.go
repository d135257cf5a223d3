package leastconnbalancer

import (
	"context"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/picker"
)

// UnaryClientInterceptor returns an interceptor that guarantees that a retry
// goes to another endpoint than the attempts before it, as long as there is one
// that is ready.
//
// Without it the policy recognises the attempts of an RPC by itself, by means
// that gRPC does not promise. The interceptor is for those who want the
// guarantee, for retry middleware that makes several RPCs of one, and for
// streams: a failure that gRPC sees while it sends is hidden from the policy.
//
// It must be the outer one: before any retry middleware in the chain, so that
// all attempts are made inside it.
func UnaryClientInterceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return invoker(picker.WithRecord(ctx), method, req, reply, cc, opts...)
	}
}

// StreamClientInterceptor is [UnaryClientInterceptor] for streams. It, too, goes
// before any retry middleware.
func StreamClientInterceptor() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		return streamer(picker.WithRecord(ctx), desc, cc, method, opts...)
	}
}

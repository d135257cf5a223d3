package leastconnbalancer

import (
	"context"

	"github.com/leastconn/grpc-leastconn/state"
)

// Session is one long stream of the application, over the RPCs that carry it one after
// another. Each RPC is opened with a context of Next. When another endpoint should
// carry the stream, the policy keeps a place there, asks by the RPC's channel, and gives
// the place to the session's next RPC.
//
// The zero value is ready for use. It is safe for concurrent use, must not be copied once it is used, and needs no
// end: one that is dropped leaves nothing. See [Run] and [Follow], which do what
// most programs need.
type Session struct{ session state.Session }

// Next returns the context of the session's next RPC, and a channel that is closed when
// that RPC should be opened anew: by then with another context of Next. The channel
// is closed once at most, and never when the stream may stay where it is; who does not listen is not
// asked again. The application decides whether it ends the old RPC before it opens the
// next one.
//
// One stream is asked at a time. Its place is kept for 10 s; a stream that has not moved by then stays.
//
// Of the RPCs that have the context, the first that is given an endpoint is the
// stream, with its retries; others, such as one that fetches a token for it meanwhile, change nothing. Contexts that
// no RPC is opened with do no harm.
func (s *Session) Next(ctx context.Context) (context.Context, <-chan struct{}) {
	return s.session.Next(ctx)
}

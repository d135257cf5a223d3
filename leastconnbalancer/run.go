package leastconnbalancer

import "context"

// Run carries one long stream over as many RPCs as it takes. f opens the stream with
// the context that it is given, and serves it until moved is closed: then the
// stream should go on elsewhere, and f ends it, as by CloseSend and reading on to io.EOF, and
// returns. It is called anew when it returns after moved was closed, whatever it returns, unless ctx is
// over: then Run returns f's error, or ctx's where f has none. Any other
// return ends Run and is its result. Calls of f do not overlap.
//
// The context of each call is cancelled when f has returned.
func Run(ctx context.Context, f func(ctx context.Context, moved <-chan struct{}) error) error {
	var s Session
	for {
		err, again := runOnce(ctx, &s, f)
		if !again {
			return err
		}
		if ctx.Err() != nil {
			if err == nil {
				err = ctx.Err()
			}
			return err
		}
	}
}

// runOnce calls f with the context of one RPC. It reports whether that was asked to move.
func runOnce(ctx context.Context, s *Session, f func(context.Context, <-chan struct{}) error) (err error, again bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, moved := s.Next(ctx)
	err = f(ctx, moved)
	select {
	case <-moved:
		return err, true
	default:
		return err, false
	}
}

package leastconnbalancer

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// Follow reads a server stream that can be resumed, over all the RPCs that it
// takes, and hands each message to handle, one at a time and in order. When the
// stream should move (see [Run]), Follow ends its RPC between two messages and
// opens the next one.
//
// Open starts an RPC with the context that it is given. It asks the server for
// what comes after last: nil for the first RPC, later the last message that
// handle has returned from. If the server keeps to that, no message is lost and
// none comes twice. Handle may keep messages, but must not change them.
//
// Follow returns nil when the server ends the stream, else the error of handle,
// of open, or of the RPC, which is the one that says so when ctx ends. It mends
// no failures: call it again, with an open that begins after what handle has
// seen. Only when an RPC fails that is to move anyway it opens the next one.
//
// A client can end a server stream by cancelling it alone, so each move is an
// RPC with the status CANCELLED. The policy takes that for no failure; a parent
// policy may, as outlier detection does. Below such a one use [Run], with
// streams that their server ends when they are half-closed.
func Follow[Res any](ctx context.Context, open func(ctx context.Context, last *Res) (grpc.ServerStreamingClient[Res], error), handle func(*Res) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	f := &follower[Res]{open: open, handle: handle}
	var result error
	ended := false
	err := Run(ctx, func(ctx context.Context, moved <-chan struct{}) error {
		result, ended = f.read(ctx, moved)
		if ended {
			end() // Run must not call again, even if the stream should move
		}
		return result
	})
	if ended {
		return result
	}
	return err
}

// follower is one call of Follow.
type follower[Res any] struct {
	open   func(ctx context.Context, last *Res) (grpc.ServerStreamingClient[Res], error)
	handle func(*Res) error
	last   *Res // that was handled
}

// read reads one RPC until it ends. It reports whether Follow is to end with the
// error, or else whether the stream moves.
func (f *follower[Res]) read(ctx context.Context, moved <-chan struct{}) (err error, ended bool) {
	rpc, cancel := context.WithCancel(ctx)
	defer cancel()
	// Most of the time Recv waits, so somebody else has to look at moved.
	go func() {
		select {
		case <-moved:
			cancel()
		case <-rpc.Done():
		}
	}()
	skipped := false // messages, which the next RPC brings again
	stream, err := f.open(rpc, f.last)
	for err == nil {
		var message *Res
		switch message, err = stream.Recv(); {
		case err != nil:
		case isClosed(moved):
			skipped = true
		default:
			if err := f.handle(message); err != nil {
				return err, true
			}
			f.last = message
		}
	}
	if err == io.EOF {
		if !skipped {
			return nil, true
		}
		cancel()
		err = status.FromContextError(rpc.Err()).Err() // as of one that its server has not ended
	}
	return err, !isClosed(moved) || ctx.Err() != nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

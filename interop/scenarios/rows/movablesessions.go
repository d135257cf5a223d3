package rows

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// movableSessions are sessions of programs that move them when they are told to.
type movableSessions struct {
	ctx    context.Context
	cancel context.CancelFunc
	held   sync.WaitGroup
	moved  atomic.Int64
	errs   chan error // why a session has ended; the first few
}

func newMovableSessions(ctx context.Context) *movableSessions {
	s := &movableSessions{errs: make(chan error, 1)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// open opens n sessions and waits until servers hold them.
func (s *movableSessions) open(c *leastconntest.Channel, n int) error {
	for range n {
		opened := make(chan struct{})
		isOpen := sync.OnceFunc(func() { close(opened) })
		s.held.Go(func() {
			defer isOpen()
			err := leastconnbalancer.Run(s.ctx, func(ctx context.Context, moved <-chan struct{}) error {
				return s.hold(ctx, c, moved, isOpen)
			})
			if s.ctx.Err() == nil {
				select {
				case s.errs <- fmt.Errorf("a session has ended: %w", err):
				default:
				}
			}
		})
		<-opened
	}
	return s.broken()
}

// hold holds one RPC of a session until it should move.
func (s *movableSessions) hold(ctx context.Context, c *leastconntest.Channel, moved <-chan struct{}, isOpen func()) error {
	stream, err := c.Client().FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	isOpen()
	ended := make(chan error, 1)
	go func() {
		_, err := stream.Recv()
		ended <- err
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("by its server: %w", err)
	case <-moved:
	}
	s.moved.Add(1)
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if err := <-ended; err != io.EOF {
		return err
	}
	return nil
}

// told is how many were told to move so far.
func (s *movableSessions) told() int { return int(s.moved.Load()) }

// broken returns why a session has ended, nil if none has.
func (s *movableSessions) broken() error {
	select {
	case err := <-s.errs:
		return err
	default:
		return nil
	}
}

// end ends all sessions.
func (s *movableSessions) end() {
	s.cancel()
	s.held.Wait()
}

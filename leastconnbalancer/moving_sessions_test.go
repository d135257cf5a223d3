package leastconnbalancer_test

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// sessions are those of a script. They live until its end.
type sessions struct {
	cancel context.CancelFunc
	ctx    context.Context
	gone   sync.WaitGroup
	begun  atomic.Int64
	told   atomic.Int64
	failed atomic.Int64 // RPCs that their programs could do without

	mu     sync.Mutex
	broken []error // how sessions have ended that should not have
}

func newSessions(ctx context.Context) *sessions {
	s := &sessions{}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// hold runs a session. It calls opened when it has a stream for the first time.
func (s *sessions) hold(program func(ctx context.Context, opened func()) error, opened func()) {
	s.begun.Add(1)
	s.gone.Go(func() {
		opened := sync.OnceFunc(opened)
		err := program(s.ctx, opened)
		if s.ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		s.broken = append(s.broken, fmt.Errorf("a session has ended: %w", err))
		s.mu.Unlock()
		opened()
	})
}

func (s *sessions) unbroken(e *env) {
	e.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(e, s.broken)
}

func (s *sessions) expectTold(script *script, args string) {
	script.Helper()
	want, err := strconv.Atoi(args)
	require.NoError(script, err, script.line)
	require.Equal(script, want, int(s.told.Load()), "%s: sessions that were told to move", script.line)
}

func (s *sessions) end(e *env) {
	e.Helper()
	s.unbroken(e)
	s.cancel()
	s.gone.Wait()
}

// duplex is a stream, and how it ends.
type duplex struct {
	grpc_testing.TestService_FullDuplexCallClient
	ended chan error
}

// open opens a stream and reads it from then on.
func (p *player) open(ctx context.Context) (*duplex, error) {
	call, err := p.Client().FullDuplexCall(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := call.Recv(); err != nil { // that the node holds it
		return nil, err
	}
	d := &duplex{call, make(chan error, 1)}
	go func() {
		for {
			if _, err := call.Recv(); err != nil {
				d.ended <- err
				return
			}
		}
	}()
	return d, nil
}

// finish half-closes the stream and waits for its end.
func (d *duplex) finish() error {
	if err := d.CloseSend(); err != nil {
		return err
	}
	if err := <-d.ended; err != io.EOF {
		return err
	}
	return nil
}

// obedient is a program that ends its stream before it opens the next one.
func (p *player) obedient(ctx context.Context, opened func()) error {
	return leastconnbalancer.Run(ctx, func(ctx context.Context, moved <-chan struct{}) error {
		d, err := p.open(ctx)
		if err != nil {
			return err
		}
		opened()
		select {
		case <-moved:
			p.script.sessions.told.Add(1)
			return d.finish()
		case err := <-d.ended:
			return fmt.Errorf("the node has ended it: %w", err)
		}
	})
}

// careful is a program that ends its stream when it has the next one. It does
// without that if it cannot open one.
func (p *player) careful(ctx context.Context, opened func()) error {
	var session leastconnbalancer.Session
	next := func() (*duplex, <-chan struct{}, error) {
		ctx, moved := session.Next(ctx)
		d, err := p.open(ctx)
		return d, moved, err
	}
	d, moved, err := next()
	if err != nil {
		return err
	}
	opened()
	for {
		select {
		case <-moved:
		case err := <-d.ended:
			return fmt.Errorf("the node has ended it: %w", err)
		}
		p.script.sessions.told.Add(1)
		newer, newerMoved, err := next()
		if moved = newerMoved; err != nil {
			p.script.sessions.failed.Add(1)
			continue
		}
		if err := d.finish(); err != nil {
			return err
		}
		d = newer
	}
}

// deaf is a program that hears that its stream should move, and does not move it.
func (p *player) deaf(ctx context.Context, opened func()) error {
	return leastconnbalancer.Run(ctx, func(ctx context.Context, moved <-chan struct{}) error {
		d, err := p.open(ctx)
		if err != nil {
			return err
		}
		opened()
		select {
		case <-moved:
			p.script.sessions.told.Add(1)
			err = <-d.ended
		case err = <-d.ended:
		}
		return fmt.Errorf("the node has ended it: %w", err)
	})
}

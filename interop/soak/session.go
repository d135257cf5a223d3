package main

import (
	"context"
	"sync"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// session is a stream that moves, over the RPCs that it takes.
type session struct {
	driver *driver
	kind   kind
	call   call
	over   <-chan struct{} // closed at its moment
	isOpen func()          // says that it is not to be open soon any more, since it is or never will be
}

// move holds a session until its moment.
func (d *driver) move(ctx context.Context, k kind, c call, isOpen func()) error {
	d.later.Add(1)
	defer d.later.Add(-1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	d.running.Go(func() {
		_ = d.clock.wait(ctx, c.until)
		close(over)
	})
	s := &session{driver: d, kind: k, call: c, over: over, isOpen: isOpen}
	defer func() { s.isOpen() }()
	return leastconnbalancer.Run(ctx, s.rpc)
}

// rpc holds one RPC of the session.
func (s *session) rpc(ctx context.Context, moved <-chan struct{}) error {
	ctx, r := withRPC(ctx)
	defer s.driver.attempts.over(r)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	overdue := time.AfterFunc(limit, cancel)
	defer overdue.Stop()
	stream, err := s.kind.stream.talk(ctx, s.driver.channel.current().Client(), s.call)
	if err != nil {
		return err
	}
	if overdue.Stop() {
		s.isOpen()
	}
	ended := make(chan error, 1)
	go func() { ended <- s.kind.stream.drain(stream) }()
	select {
	case err := <-ended:
		return err
	case <-moved:
		s.isOpen() // if it was overdue just now
		s.driver.soon.Add(1)
		s.isOpen = sync.OnceFunc(func() { s.driver.soon.Add(-1) })
		s.driver.report.move()
		overdue.Reset(limit)
		_ = stream.CloseSend() // what comes of it is received
	case <-s.over:
		if !s.call.read {
			cancel()
			break
		}
		overdue.Reset(limit)
		_ = stream.CloseSend()
	}
	return <-ended
}

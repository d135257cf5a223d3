package leastconnbalancer

import (
	"context"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// errMoved is how a stream ends for its program when it should move.
var errMoved = status.Error(codes.Unavailable, "least_conn: the stream should move to another endpoint: open it again")

// halfCloseTime is how long a server may take to end a stream that is half-closed:
// enough for its last messages, and less than a place stays reserved.
const halfCloseTime = 5 * time.Second

// movableStream embeds a stream to end it when it should move.
type movableStream struct {
	grpc.ClientStream
	desc   *grpc.StreamDesc
	caller context.Context // the program's
	cancel context.CancelFunc
	left   func() // notes that the session has no stream; called at most once

	// sending is held, by who puts a value in, while a message is sent or the stream
	// half-closed. It guards halfClosed, as gRPC allows one of these at a time.
	sending    chan struct{}
	halfClosed bool

	mu       sync.Mutex
	moving   bool // it is to end with errMoved
	half     bool // it was half-closed for that
	finished bool // left was called
}

func newMovableStream(stream grpc.ClientStream, desc *grpc.StreamDesc, caller context.Context, cancel context.CancelFunc) *movableStream {
	return &movableStream{ClientStream: stream, desc: desc, caller: caller, cancel: cancel, sending: make(chan struct{}, 1)}
}

// watch ends the stream when moved is closed. It returns when the RPC is over.
func (s *movableStream) watch(rpc context.Context, moved <-chan struct{}) {
	select {
	case <-rpc.Done():
		return
	case <-moved:
	}
	defer s.cancel()
	if !s.desc.ClientStreams || !s.desc.ServerStreams {
		s.move(false)
		return
	}
	timer := time.NewTimer(halfCloseTime)
	defer timer.Stop()
	select {
	case <-rpc.Done():
		return
	case <-timer.C: // a message is being sent all that time
		s.move(false)
		return
	case s.sending <- struct{}{}:
	}
	own := !s.halfClosed
	s.move(own)
	if own {
		s.halfClosed = true
		_ = s.ClientStream.CloseSend() // it says nothing: errors come with RecvMsg
	}
	<-s.sending
	if !own {
		return
	}
	select {
	case <-rpc.Done():
	case <-timer.C:
	}
}

// move notes how the stream is going to end.
func (s *movableStream) move(half bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moving, s.half = true, half
}

// end returns what the program is told of the stream's error.
func (s *movableStream) end(err error) error {
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.moving || s.caller.Err() != nil || err == io.EOF && !s.half {
		return err
	}
	if !s.finished {
		s.finished = true
		s.left()
	}
	if err == io.EOF || status.Code(err) == codes.Canceled {
		return errMoved
	}
	return err
}

// Header implements grpc.ClientStream.
func (s *movableStream) Header() (metadata.MD, error) {
	md, err := s.ClientStream.Header()
	return md, s.end(err)
}

// CloseSend implements grpc.ClientStream.
func (s *movableStream) CloseSend() error {
	s.sending <- struct{}{}
	defer func() { <-s.sending }()
	if s.halfClosed {
		return nil
	}
	s.halfClosed = true
	return s.ClientStream.CloseSend()
}

// SendMsg implements grpc.ClientStream.
func (s *movableStream) SendMsg(m any) error {
	s.sending <- struct{}{}
	defer func() { <-s.sending }()
	if s.movingHalf() {
		return io.EOF
	}
	err := s.ClientStream.SendMsg(m)
	if err == io.EOF { // the stream has ended, and RecvMsg says how
		return err
	}
	return s.end(err)
}

func (s *movableStream) movingHalf() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.half
}

// RecvMsg implements grpc.ClientStream.
func (s *movableStream) RecvMsg(m any) error { return s.end(s.ClientStream.RecvMsg(m)) }

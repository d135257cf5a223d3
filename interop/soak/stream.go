package main

import (
	"cmp"
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"
)

// stream is one of the kinds of streaming RPC.
type stream struct {
	open func(context.Context, grpc_testing.TestServiceClient) (grpc.ClientStream, error)
	// opened waits until a server holds it.
	opened func(grpc.ClientStream) error
	// request makes a message to send; nil if the client does not stream.
	request func(*grpc_testing.Payload) any
	// answered says whether each message is answered at once.
	answered bool
	response func() any
}

var clientStreaming = &stream{
	open: func(ctx context.Context, c grpc_testing.TestServiceClient) (grpc.ClientStream, error) {
		return c.StreamingInputCall(ctx)
	},
	opened: func(s grpc.ClientStream) error {
		if header, err := s.Header(); err != nil || header != nil {
			return err
		}
		return s.RecvMsg(&grpc_testing.StreamingInputCallResponse{}) // it has ended, and this says why
	},
	request: func(p *grpc_testing.Payload) any {
		return &grpc_testing.StreamingInputCallRequest{Payload: p}
	},
	response: func() any { return &grpc_testing.StreamingInputCallResponse{} },
}

var serverStreaming = &stream{
	open: func(ctx context.Context, c grpc_testing.TestServiceClient) (grpc.ClientStream, error) {
		return c.StreamingOutputCall(ctx, &grpc_testing.StreamingOutputCallRequest{})
	},
	opened:   func(s grpc.ClientStream) error { return s.RecvMsg(&grpc_testing.StreamingOutputCallResponse{}) },
	response: func() any { return &grpc_testing.StreamingOutputCallResponse{} },
}

var bidirectional = &stream{
	open: func(ctx context.Context, c grpc_testing.TestServiceClient) (grpc.ClientStream, error) {
		return c.FullDuplexCall(ctx)
	},
	opened: func(s grpc.ClientStream) error { return s.RecvMsg(&grpc_testing.StreamingOutputCallResponse{}) },
	request: func(p *grpc_testing.Payload) any {
		return &grpc_testing.StreamingOutputCallRequest{Payload: p}
	},
	answered: true,
	response: func() any { return &grpc_testing.StreamingOutputCallResponse{} },
}

// talk opens the stream and sends its messages. The error is io.EOF if the server has ended it well meanwhile.
func (s *stream) talk(ctx context.Context, client grpc_testing.TestServiceClient, c call) (grpc.ClientStream, error) {
	cs, err := s.open(ctx, client)
	if err != nil {
		return nil, err
	}
	if err := s.opened(cs); err != nil {
		return nil, err
	}
	if s.request == nil {
		return cs, nil
	}
	for range c.messages {
		// Sending says io.EOF of a stream that has ended; why it did comes with receiving.
		if err := cs.SendMsg(s.request(c.payload())); err == io.EOF {
			return nil, cmp.Or(s.drain(cs), io.EOF)
		} else if err != nil {
			return nil, err
		}
		if s.answered {
			if err := cs.RecvMsg(s.response()); err != nil {
				return nil, err
			}
		}
	}
	return cs, nil
}

// drain receives to the end, and returns nil if that is a good one.
func (s *stream) drain(cs grpc.ClientStream) error {
	for {
		if err := cs.RecvMsg(s.response()); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// payload is what the call's messages carry.
func (c call) payload() *grpc_testing.Payload {
	if c.size == 0 {
		return nil
	}
	return &grpc_testing.Payload{Body: make([]byte, c.size)}
}

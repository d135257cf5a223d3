package main

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// ending is how an RPC comes to its end, if nothing else ends it before.
type ending int

const (
	finished  ending = iota // by both sides
	cancelled               // by the client, a while after it began
	deadlined               // by its deadline
	held                    // by both sides or by the client, at its moment of the plan
	abandoned               // by the server alone: the client does not notice before its moment
	moving                  // as held, over all the streams that it takes when it is told to move
)

// limit is when an RPC ends that is to be over soon and is kept from it; held ones have as long to open.
const limit = 2 * time.Second

// codesOfFaults are the codes that what is injected leads to.
var codesOfFaults = append([]codes.Code{
	codes.OK, codes.Canceled, codes.DeadlineExceeded, codes.Unavailable,
	codes.Internal, // of handlers that panic
}, failures...)

// explained reports whether what is injected explains that an RPC ended so. gRPC hides the code of the last attempt when
// sending is the first to notice that it failed.
func explained(err error) bool {
	return slices.Contains(codesOfFaults, status.Code(err)) || strings.HasPrefix(err.Error(), "max retries exhausted:")
}

// kind is a kind of traffic. Adding one to the table is all that it takes to have it made and counted.
type kind struct {
	name   string
	share  int     // how often it is drawn, relative to the others
	stream *stream // nil if it is unary
	ending ending
	ready  bool // it waits for a server that is ready
}

var traffic = []kind{
	{name: "unary", share: 24},
	{name: "unary, waits for ready", share: 4, ready: true},
	{name: "unary, cancelled", share: 6, ending: cancelled},
	{name: "unary, deadline", share: 6, ending: deadlined},
	{name: "client-streaming", share: 6, stream: clientStreaming},
	{name: "client-streaming, cancelled", share: 2, stream: clientStreaming, ending: cancelled},
	{name: "client-streaming, deadline", share: 2, stream: clientStreaming, ending: deadlined},
	{name: "client-streaming, held", share: 1, stream: clientStreaming, ending: held},
	{name: "client-streaming, abandoned", share: 1, stream: clientStreaming, ending: abandoned},
	{name: "server-streaming", share: 6, stream: serverStreaming},
	{name: "server-streaming, deadline", share: 2, stream: serverStreaming, ending: deadlined},
	{name: "server-streaming, held", share: 2, stream: serverStreaming, ending: held},
	{name: "bidirectional", share: 8, stream: bidirectional},
	{name: "bidirectional, cancelled", share: 3, stream: bidirectional, ending: cancelled},
	{name: "bidirectional, deadline", share: 3, stream: bidirectional, ending: deadlined},
	{name: "bidirectional, held", share: 3, stream: bidirectional, ending: held},
	{name: "bidirectional, abandoned", share: 2, stream: bidirectional, ending: abandoned},
	{name: "bidirectional, moves", share: 6, stream: bidirectional, ending: moving},
}

// kindOf returns the kind of that name; the plan knows no others.
func kindOf(name string) kind {
	for _, k := range traffic {
		if k.name == name {
			return k
		}
	}
	panic("soak: no traffic " + name)
}

func trafficShares() []int {
	shares := make([]int, len(traffic))
	for i, k := range traffic {
		shares[i] = k.share
	}
	return shares
}

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

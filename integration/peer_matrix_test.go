package integration

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// peerCall is a method of the test service of one of the four kinds.
type peerCall struct {
	kind     leastconntest.Kind
	method   string
	request  any // what the client sends first, if anything
	response any
}

var peerCalls = []peerCall{
	{leastconntest.Unary, "UnaryCall", &grpc_testing.SimpleRequest{}, &grpc_testing.SimpleResponse{}},
	{leastconntest.ClientStream, "StreamingInputCall", nil, &grpc_testing.StreamingInputCallResponse{}},
	{leastconntest.ServerStream, "StreamingOutputCall", &grpc_testing.StreamingOutputCallRequest{}, &grpc_testing.StreamingOutputCallResponse{}},
	{leastconntest.Bidi, "FullDuplexCall", nil, &grpc_testing.StreamingOutputCallResponse{}},
}

// peerEnding is a way for an RPC to end.
type peerEnding struct {
	name   string
	code   codes.Code
	begin  func(context.Context) (context.Context, context.CancelFunc) // of a context that ends by itself
	end    func(*peerCell)                                             // nil when the RPC ends by itself
	deadly bool                                                        // for the server
}

var peerEndings = []peerEnding{
	{name: "OK by the client", code: codes.OK, end: (*peerCell).halfClose},
	{name: "OK by the server", code: codes.OK, end: func(x *peerCell) { x.peer.end(codes.OK) }},
	{name: "application error", code: codes.Aborted, end: func(x *peerCell) { x.peer.end(codes.Aborted) }},
	{name: "cancel", code: codes.Canceled, end: func(x *peerCell) { x.cancel() }},
	{name: "deadline", code: codes.DeadlineExceeded, begin: func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 100*time.Millisecond)
	}},
	{name: "channel closed", code: codes.Canceled, end: func(x *peerCell) { require.NoError(x, x.Close()) }},
	{name: "drain", code: codes.OK, end: (*peerCell).drain, deadly: true},
	{name: "crash", code: codes.Unavailable, end: func(x *peerCell) { x.peer.kill() }, deadly: true},
}

// TestPeersEveryEndOfEveryKind: however an RPC of any kind ends, and whatever
// its server is written in, what it was counted for is given back.
func TestPeersEveryEndOfEveryKind(t *testing.T) {
	eachLanguage(t, func(t *testing.T, lang language) {
		shared := startPeer(t, lang)
		for _, call := range peerCalls {
			for _, e := range peerEndings {
				t.Run(call.kind.String()+"/"+e.name, func(t *testing.T) {
					p := shared.in(t)
					if e.deadly {
						p = startPeer(t, lang)
					}
					x := &peerCell{peerLab: dialPeers(t, p), peer: p, call: call}
					x.run(e)
				})
			}
			t.Run(call.kind.String()+"/exception", func(t *testing.T) {
				p := shared.in(t)
				x := &peerCell{peerLab: dialPeers(t, p), peer: p, call: call}
				x.ctx = metadata.AppendToOutgoingContext(x.ctx, "throw", "true")
				x.start()
				x.settle(lang.threw)
			})
		}
	})
}

// peerCell is one field of the matrix: an RPC of a kind that ends in some way.
type peerCell struct {
	*peerLab
	peer *peer
	call peerCall

	stream grpc.ClientStream
	cancel context.CancelFunc
	result chan error
}

func (x *peerCell) run(e peerEnding) {
	if e.begin == nil {
		e.begin = context.WithCancel
	}
	x.ctx, x.cancel = e.begin(x.ctx)
	defer x.cancel()
	x.start()
	if e.end != nil {
		wait(x.T, "the RPC is handled", func() bool { return x.peer.Live() == 1 })
		x.counts([]server{x.peer}, 1)
		e.end(x)
	}
	x.settle(e.code)
	if !e.deadly {
		wait(x.T, "the server knows of the end", func() bool { return x.peer.Live() == 0 })
	}
}

// start begins the RPC, which the server holds, and reads it to its end in a
// goroutine of its own.
func (x *peerCell) start() {
	kind := x.call.kind
	s, err := x.Conn().NewStream(x.ctx, &grpc.StreamDesc{
		ClientStreams: kind == leastconntest.ClientStream || kind == leastconntest.Bidi,
		ServerStreams: kind == leastconntest.ServerStream || kind == leastconntest.Bidi,
	}, "/grpc.testing.TestService/"+x.call.method)
	require.NoError(x, err)
	if x.call.request != nil {
		require.NoError(x, s.SendMsg(x.call.request))
		require.NoError(x, s.CloseSend())
	}
	x.stream, x.result = s, make(chan error, 1)
	into := x.call.response
	go func() {
		for {
			err := s.RecvMsg(into)
			if err == io.EOF {
				err = nil
			} else if err == nil && kind != leastconntest.Unary && kind != leastconntest.ClientStream {
				continue
			}
			x.result <- err
			return
		}
	}()
}

// settle waits for the RPC's end, with which its count is gone.
func (x *peerCell) settle(code codes.Code) {
	x.Helper()
	require.Equal(x, code, status.Code(<-x.result))
	x.counts([]server{x.peer}, 0)
	_ = x.Close() // again, in one case
	wait(x.T, "nothing is left in the ledger", func() bool { return node(x.T, x.Channel, x.peer.addr).Addresses == nil })
}

// halfClose ends the RPC from the client's side, where that can.
func (x *peerCell) halfClose() {
	if x.call.request != nil {
		x.peer.end(codes.OK)
		return
	}
	require.NoError(x, x.stream.CloseSend())
}

// drain ends the RPC once its server has begun to shut down gracefully.
func (x *peerCell) drain() {
	x.peer.drain()
	wait(x.T, "the server takes no more connections", func() bool { return !x.ready(x.peer) })
	x.counts([]server{x.peer}, 1)
	x.peer.tell("end 0") // with which it may have no time to answer
	x.peer.waitDrained()
}

package integration

import (
	"cmp"
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

// methods of the test service, one of each kind of RPC.
var methods = []struct {
	kind     leastconntest.Kind
	name     string
	request  any // what the client sends first, if anything
	response func() any
}{
	{leastconntest.Unary, "UnaryCall", &grpc_testing.SimpleRequest{}, func() any { return new(grpc_testing.SimpleResponse) }},
	{leastconntest.ClientStream, "StreamingInputCall", nil, func() any { return new(grpc_testing.StreamingInputCallResponse) }},
	{leastconntest.ServerStream, "StreamingOutputCall", &grpc_testing.StreamingOutputCallRequest{}, func() any { return new(grpc_testing.StreamingOutputCallResponse) }},
	{leastconntest.Bidi, "FullDuplexCall", nil, func() any { return new(grpc_testing.StreamingOutputCallResponse) }},
}

// ending is a way for RPCs to end.
type ending struct {
	name     string
	header   string          // that makes the server end them
	deadline time.Duration   // that ends them
	end      func(*heldRPCs) // what ends them otherwise
	unheard  bool            // by the node: HAProxy may keep its side open until it times out

	peer          []codes.Code // from a server of another language
	unary, stream []codes.Code // through a proxy: of the RPC whose client has seen no answer yet, and the others
}

func one(c codes.Code) []codes.Code { return []codes.Code{c} }

var endings = []ending{
	{name: "OK by the client", end: (*heldRPCs).halfClose, peer: one(codes.OK), unary: one(codes.OK), stream: one(codes.OK)},
	// Not of a node: it has no response to who only sends requests and is not done.
	{name: "OK by the server", end: func(h *heldRPCs) { h.system.endHeld(codes.OK) }, peer: one(codes.OK)},
	{name: "application error", end: func(h *heldRPCs) { h.system.endHeld(codes.Aborted) },
		peer: one(codes.Aborted), unary: one(codes.OK), stream: one(codes.Aborted)},
	{name: "exception", header: "throw"},
	{name: "cancel", end: func(h *heldRPCs) { h.cancel() },
		peer: one(codes.Canceled), unary: one(codes.Canceled), stream: one(codes.Canceled)},
	// The node keeps the deadline, too, and may be first: it resets the stream,
	// which the proxy reports as it does any other reset, and as that of a unary RPC
	// where the machine was too busy for an answer to begin.
	{name: "deadline", deadline: 500 * time.Millisecond, peer: one(codes.DeadlineExceeded),
		unary:  []codes.Code{codes.DeadlineExceeded, codes.Unavailable},
		stream: []codes.Code{codes.DeadlineExceeded, codes.Internal, codes.Unavailable}},
	{name: "channel closed", end: func(h *heldRPCs) { h.channel.Close() }, unheard: true,
		peer: one(codes.Canceled), unary: one(codes.Canceled), stream: one(codes.Canceled)},
	{name: "drain", end: (*heldRPCs).drain, peer: one(codes.OK), unary: one(codes.OK), stream: one(codes.OK)},
	{name: "crash", end: func(h *heldRPCs) { h.system.crash() },
		peer: one(codes.Unavailable), unary: one(codes.Unavailable), stream: one(codes.Unavailable)},
	{name: "node stopped", end: func(h *heldRPCs) { stopNode(h.system) }, unary: one(codes.Unavailable), stream: one(codes.Internal)},
}

// codes returns how RPCs end, one of each method; nil if they do not.
func (e ending) codes(k kind) [][]codes.Code {
	switch {
	case k.language != nil && e.header != "":
		threw := one(k.language.threw)
		return [][]codes.Code{threw, threw, threw, threw}
	case k.language != nil && e.peer != nil:
		return [][]codes.Code{e.peer, e.peer, e.peer, e.peer}
	case k.proxy != nil && e.unary != nil:
		return [][]codes.Code{e.unary, e.stream, e.stream, e.stream}
	}
	return nil
}

// However RPCs of any kind end, and whatever handles them, what they were
// counted for is given back, at both ends.
func TestSystemsEveryEndOfEveryKind(t *testing.T) {
	each(t, kinds, func(t *testing.T, k kind) {
		for _, e := range endings {
			if want := e.codes(k); want != nil {
				t.Run(e.name, func(t *testing.T) {
					s := k.start(t, settings{})
					h := &heldRPCs{env: dialReady(t, s), system: s}
					h.run(e, want)
				})
			}
		}
	})
}

// heldRPCs are RPCs that a system holds, one of each kind.
type heldRPCs struct {
	*env
	system  system
	cancel  context.CancelFunc
	streams []grpc.ClientStream
	results []chan error
}

func (h *heldRPCs) run(e ending, want [][]codes.Code) {
	h.system.holdUnary()
	h.ctx, h.cancel = context.WithTimeout(h.ctx, cmp.Or(e.deadline, 2*patience))
	defer h.cancel()
	if e.header != "" {
		h.ctx = metadata.AppendToOutgoingContext(h.ctx, e.header, "true")
	}
	for i := range methods {
		h.start(i)
	}
	if e.end != nil {
		wait(h.T, "the RPCs are held", func() bool { return h.system.Live() == len(methods) })
		h.inFlight(len(methods))
		e.end(h)
	}
	for i, m := range methods {
		err := <-h.results[i]
		require.Contains(h, want[i], status.Code(err), "%v: %v", m.kind, err)
	}
	h.inFlight(0)
	if _, isProxy := h.system.(*proxy); !isProxy || !e.unheard {
		h.counts(0)
	}
	h.channel.Close() // again, in one case
	wait(h.T, "nothing is left in the ledger", func() bool { return len(h.snapshot().Endpoints) == 0 })
}

// start makes an RPC, waits for what it can see of the server, and has it read
// to its end.
func (h *heldRPCs) start(i int) {
	h.Helper()
	m, response, result := methods[i], methods[i].response(), make(chan error, 1)
	desc := &grpc.StreamDesc{
		ClientStreams: m.kind == leastconntest.ClientStream || m.kind == leastconntest.Bidi,
		ServerStreams: m.kind == leastconntest.ServerStream || m.kind == leastconntest.Bidi,
	}
	s, err := h.conn.NewStream(h.ctx, desc, "/grpc.testing.TestService/"+m.name)
	h.streams, h.results = append(h.streams, s), append(h.results, result)
	if err != nil {
		result <- err
		return
	}
	// From here on, why it fails comes with RecvMsg.
	if m.request != nil {
		_ = s.SendMsg(m.request)
		_ = s.CloseSend()
	}
	if m.kind != leastconntest.Unary {
		_, _ = s.Header()
	}
	go func() {
		err := s.RecvMsg(response)
		for err == nil && desc.ServerStreams {
			err = s.RecvMsg(response)
		}
		if err == io.EOF {
			err = nil
		}
		result <- err
	}()
}

// halfClose ends the RPCs as both sides want it: who sends requests says that
// there are no more, and the server ends the others.
func (h *heldRPCs) halfClose() {
	for i, m := range methods {
		if m.request == nil {
			require.NoError(h, h.streams[i].CloseSend())
		}
	}
	wait(h.T, "the half-closed streams have ended", func() bool { return h.system.Live() == 2 })
	h.system.endHeld(codes.OK)
}

// drain ends the RPCs once their server has begun to shut down gracefully.
func (h *heldRPCs) drain() {
	h.system.drain()
	h.waitNotReady(h.system)
	h.inFlight(len(methods))
	h.halfClose()
	h.system.waitDrained()
}

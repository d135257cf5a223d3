package integration

import (
	"cmp"
	"context"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// quartet is one RPC of each kind that a node behind a proxy holds.
type quartet struct {
	*mix
	proxy  *proxy
	node   *leastconntest.Node
	calls  []*heldCall
	cancel context.CancelFunc
}

// heldCall is an RPC of a kind.
type heldCall struct {
	peerCall
	stream grpc.ClientStream
	result chan error
}

// quartetEnding is a way for the RPCs to end.
type quartetEnding struct {
	name     string
	end      func(*quartet) // nil when the deadline does it
	deadline time.Duration
	unary    []codes.Code // of the RPC whose client has seen no answer yet
	streams  []codes.Code
	unheard  bool // by the node: HAProxy may keep its side open until it times out
}

func one(c codes.Code) []codes.Code { return []codes.Code{c} }

var quartetEndings = []quartetEnding{
	{name: "OK", end: (*quartet).finish, unary: one(codes.OK), streams: one(codes.OK)},
	{name: "application error", end: (*quartet).fail, unary: one(codes.OK), streams: one(codes.Aborted)},
	{name: "cancel", end: func(q *quartet) { q.cancel() }, unary: one(codes.Canceled), streams: one(codes.Canceled)},
	// The node keeps the deadline, too, and may be first: it resets the stream,
	// which the proxy reports as it does any other reset.
	{name: "deadline", deadline: 500 * time.Millisecond, unary: []codes.Code{codes.DeadlineExceeded, codes.Unavailable},
		streams: []codes.Code{codes.DeadlineExceeded, codes.Internal}},
	{name: "channel closed", end: func(q *quartet) { q.Close() }, unary: one(codes.Canceled), streams: one(codes.Canceled), unheard: true},
	{name: "node stopped", end: func(q *quartet) { q.node.Stop() }, unary: one(codes.Unavailable), streams: one(codes.Internal)},
	{name: "worker killed", end: func(q *quartet) { q.proxy.signalWorker(syscall.SIGKILL) },
		unary: one(codes.Unavailable), streams: one(codes.Unavailable)},
}

// However RPCs of any kind that go through a proxy end, what they were counted
// for is given back, at both ends.
func TestProxyEveryEndOfEveryKind(t *testing.T) {
	eachProxy(t, func(t *testing.T, k proxyKind) {
		for _, e := range quartetEndings {
			t.Run(e.name, func(t *testing.T) {
				n := startNodes(t, "far")[0]
				p := startProxy(t, k, settings{}, n)
				q := &quartet{mix: dialMix(t, p), proxy: p, node: n}
				q.run(e)
			})
		}
	})
}

func (q *quartet) run(e quartetEnding) {
	q.node.HoldUnary(true)
	defer q.node.HoldUnary(false)
	q.ctx, q.cancel = context.WithTimeout(q.ctx, cmp.Or(e.deadline, time.Minute))
	defer q.cancel()
	for _, call := range peerCalls {
		q.start(call)
	}
	if e.end != nil {
		wait(q.T, "the node holds the RPCs", func() bool { return q.node.Live() == len(q.calls) })
		q.inFlight(len(q.calls))
		e.end(q)
	}
	for _, c := range q.calls {
		want := e.streams
		if c.kind == leastconntest.Unary {
			want = e.unary
		}
		err := <-c.result
		require.Contains(q, want, status.Code(err), "%v: %v", c.kind, err)
	}
	q.inFlight(0)
	if !e.unheard {
		q.counts(0)
	}
}

// start makes an RPC, waits for what it can see of the node, and has it read to
// its end.
func (q *quartet) start(call peerCall) {
	q.Helper()
	desc := &grpc.StreamDesc{
		ClientStreams: call.kind == leastconntest.ClientStream || call.kind == leastconntest.Bidi,
		ServerStreams: call.kind == leastconntest.ServerStream || call.kind == leastconntest.Bidi,
	}
	s, err := q.Conn().NewStream(q.ctx, desc, "/grpc.testing.TestService/"+call.method)
	c := &heldCall{peerCall: call, stream: s, result: make(chan error, 1)}
	q.calls = append(q.calls, c)
	if err != nil {
		c.result <- err
		return
	}
	// From here on, why it fails comes with RecvMsg.
	if call.request != nil {
		_ = s.SendMsg(call.request)
		_ = s.CloseSend()
	}
	if call.kind != leastconntest.Unary {
		_, _ = s.Header()
	}
	go func() {
		err := s.RecvMsg(call.response)
		for err == nil && desc.ServerStreams {
			err = s.RecvMsg(call.response)
		}
		if err == io.EOF {
			err = nil
		}
		c.result <- err
	}()
}

// finish ends the RPCs as both sides want it: who sends requests says that
// there are no more, and the node ends the others.
func (q *quartet) finish() {
	q.node.HoldUnary(false)
	for _, c := range q.calls {
		if c.request == nil {
			require.NoError(q, c.stream.CloseSend())
		}
	}
	wait(q.T, "the half-closed streams have ended", func() bool {
		return q.node.LiveOf(leastconntest.ClientStream, leastconntest.Bidi) == 0
	})
	q.node.EndStreams()
}

// fail has the node fail the streams. The unary RPC succeeds; a later one fails
// before anything else is said.
func (q *quartet) fail() {
	q.node.HoldUnary(false)
	q.node.FailStreams(codes.Aborted)
	require.NoError(q, q.node.WaitLive(q.ctx, 0))
	q.node.SetFail(codes.ResourceExhausted)
	_, err := q.Unary(q.ctx)
	require.Equal(q, codes.ResourceExhausted, status.Code(err), "%v", err)
}

package leastconnbalancer_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// However an RPC of any kind ends, what it was counted for is given back.
func TestD19EveryEndOfEveryKind(t *testing.T) {
	for _, kind := range []leastconntest.Kind{leastconntest.Unary, leastconntest.ClientStream, leastconntest.ServerStream, leastconntest.Bidi} {
		for _, e := range endings {
			t.Run(kind.String()+"/"+e.name, func(t *testing.T) { newCell(t, kind).run(e) })
		}
	}
}

// ending is a way for an RPC to end.
type ending struct {
	name    string
	code    codes.Code
	prepare func(*cell) // before the RPC starts
	end     func(*cell) // once it is under way; nil when it ends by itself
}

var endings = []ending{
	{name: "OK", code: codes.OK, end: (*cell).finish},
	{name: "application error", code: codes.Aborted, end: func(x *cell) {
		x.each(func(n *leastconntest.Node) { n.FailStreams(codes.Aborted) })
	}, prepare: (*cell).prepareError},
	{name: "cancel", code: codes.Canceled, end: func(x *cell) { x.cancel() }},
	{name: "deadline", code: codes.DeadlineExceeded, prepare: func(x *cell) {
		x.ctx, x.cancel = context.WithTimeout(x.ctx, 200*time.Millisecond)
	}},
	{name: "server crash", code: codes.Unavailable, end: func(x *cell) { x.each((*leastconntest.Node).Stop) }},
	{name: "channel closed", code: codes.Canceled, end: func(x *cell) { require.NoError(x, x.channel.Close()) }},
	{name: "panic", code: codes.Internal, prepare: func(x *cell) {
		x.each(func(n *leastconntest.Node) { n.SetPanic(true) })
	}, end: func(x *cell) { x.release(x.nodes...) }},
}

// cell is one field of the matrix: an RPC of a kind that ends in some way.
type cell struct {
	*lab
	kind    leastconntest.Kind
	nodes   []*leastconntest.Node
	channel *channel

	ctx       context.Context
	cancel    context.CancelFunc
	halfClose func() error
	brief     bool // the RPC may be over before anyone looks
	result    chan error
}

func newCell(t *testing.T, kind leastconntest.Kind) *cell {
	x := &cell{lab: newLab(t), kind: kind, result: make(chan error, 1)}
	x.nodes = x.lab.nodes("a", "b")
	x.channel = x.dial(x.nodes...)
	x.ctx, x.cancel = context.WithCancel(x.lab.ctx)
	x.each(func(n *leastconntest.Node) { n.HoldUnary(true) })
	return x
}

func (x *cell) each(do func(*leastconntest.Node)) {
	for _, n := range x.nodes {
		do(n)
	}
}

func (x *cell) run(e ending) {
	if e.prepare != nil {
		e.prepare(x)
	}
	defer x.cancel()
	x.start()
	x.waitUnderWay(e)
	if e.end != nil {
		e.end(x)
	}
	require.Equal(x, e.code, status.Code(<-x.result))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	require.NoError(x, leastconntest.WaitFor(ctx, "every count to be 0", func() bool { return x.channel.snapshot().InFlight == 0 }))
	x.channel.counts(x.nodes, 0, 0)
	x.served(x.nodes, 0, 0)
	_ = x.channel.Close()
	require.Empty(x, x.channel.snapshot().Endpoints, "what is left in the ledger")
}

// waitUnderWay waits until the RPC is counted and handled, where that can be
// seen for sure.
func (x *cell) waitUnderWay(e ending) {
	x.wait("the RPC has reached a node", func() bool {
		return x.nodes[0].Started()+x.nodes[1].Started() == 1 || len(x.result) == 1
	})
	if panics := e.code == codes.Internal && x.kind != leastconntest.Unary; panics || x.brief || e.end == nil {
		return
	}
	x.wait("the RPC is held", func() bool { return x.nodes[0].Live()+x.nodes[1].Live() == 1 })
	require.EqualValues(x, 1, x.channel.snapshot().InFlight)
}

// start makes the RPC, which the node holds, in a goroutine of its own.
func (x *cell) start() {
	client := x.channel.Client()
	switch x.kind {
	case leastconntest.Unary:
		go func() {
			_, err := client.UnaryCall(x.ctx, &grpc_testing.SimpleRequest{})
			x.result <- err
		}()
	case leastconntest.ClientStream:
		s, err := client.StreamingInputCall(x.ctx)
		require.NoError(x, err)
		x.acknowledged(s)
		x.halfClose = s.CloseSend
		go func() { x.result <- s.RecvMsg(new(grpc_testing.StreamingInputCallResponse)) }()
	case leastconntest.ServerStream:
		s, err := client.StreamingOutputCall(x.ctx, &grpc_testing.StreamingOutputCallRequest{})
		require.NoError(x, err)
		x.acknowledged(s)
		go func() { x.result <- drain(s.Recv) }()
	case leastconntest.Bidi:
		s, err := client.FullDuplexCall(x.ctx)
		require.NoError(x, err)
		x.acknowledged(s)
		x.halfClose = s.CloseSend
		go func() { x.result <- drain(s.Recv) }()
	}
}

// acknowledged waits until a node holds the stream, or it is over.
func (x *cell) acknowledged(s grpc.ClientStream) { _, _ = s.Header() }

// drain reads a stream to its end.
func drain(recv func() (*grpc_testing.StreamingOutputCallResponse, error)) error {
	for {
		if _, err := recv(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// finish ends the RPC as both sides want it.
func (x *cell) finish() {
	switch x.kind {
	case leastconntest.Unary:
		x.release(x.nodes...)
	case leastconntest.ServerStream:
		x.each((*leastconntest.Node).EndStreams)
	default:
		require.NoError(x, x.halfClose())
	}
}

// prepareError lets unary RPCs fail, which nobody can do later.
func (x *cell) prepareError() {
	if x.kind == leastconntest.Unary {
		x.brief = true
		x.each(func(n *leastconntest.Node) { n.SetFail(codes.Aborted) })
	}
}

package leastconnbalancer_test

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

var kinds = []leastconntest.Kind{leastconntest.Unary, leastconntest.ClientStream, leastconntest.ServerStream, leastconntest.Bidi}

// twoKinds are the kinds of RPC that differ most.
var twoKinds = []leastconntest.Kind{leastconntest.Unary, leastconntest.Bidi}

const (
	// window is how much gRPC sends before the server says that it takes more.
	window = 64<<10 - 1
	// handshake is what a server says before there are RPCs: SETTINGS with one
	// value, and that it has those of the client.
	handshake = 15 + 9
	// upkeep is more than a client may still have to say after that, and less than
	// the header of its first RPC.
	upkeep = 50
)

// proxiedRPC is an RPC of a kind that goes to a, through a proxy. The channel also
// has b and c, without a proxy and with a stream on each.
type proxiedRPC struct {
	*env
	kind    leastconntest.Kind
	nodes   []*leastconntest.Node
	proxy   *leastconntest.Proxy
	policy  recordingPolicy
	channel *channel
	held    []*leastconntest.Stream
	broken  int // connections to a that have broken

	ctx     context.Context
	cancel  context.CancelFunc
	opts    []grpc.CallOption
	acked   chan struct{} // closed when a stream's header is there, or it is over
	closing chan struct{} // closed when the client is to half-close
	finish  func()        // closes closing
	result  chan error
}

func newProxiedRPC(e *env, kind leastconntest.Kind, cfg leastconntest.ChannelConfig, opts ...grpc.ServerOption) *proxiedRPC {
	x := &proxiedRPC{env: e, kind: kind, acked: make(chan struct{}), closing: make(chan struct{}), result: make(chan error, 1)}
	x.finish = sync.OnceFunc(func() { close(x.closing) })
	x.Cleanup(x.finish)
	x.ctx, x.cancel = context.WithCancel(x.env.ctx)
	x.Cleanup(x.cancel)
	for _, name := range []string{"a", "b", "c"} {
		// A client may ask as often as it can whether a server is alive.
		of := []grpc.ServerOption{grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second})}
		if name == "a" {
			of = append(of, opts...)
		}
		x.nodes = append(x.nodes, x.node(name, of...))
	}
	for _, n := range x.nodes {
		n.HoldUnary(true)
	}
	x.proxy = x.proxied(x.nodes[0])
	x.channel = x.dialRecorded(&x.policy, cfg, x.nodes[1:]...)
	x.held, _ = x.channel.hold(2)
	require.NoError(x, x.channel.Update(x.endpoints()...))
	x.waitReady()
	// A server speaks first: that the client can use it does not mean that it has
	// heard the client.
	x.received(leastconntest.ServerToClient, handshake-1)
	return x
}

func (x *proxiedRPC) endpoints() []resolver.Endpoint {
	return append([]resolver.Endpoint{x.proxy.Endpoint()}, leastconntest.Endpoints(x.nodes[1:]...)...)
}

// waitReady waits until the channel can use a, by a connection that is not known
// to have broken.
func (x *proxiedRPC) waitReady() {
	x.Helper()
	x.wait("a is ready", func() bool {
		return x.proxy.Accepted() > x.broken && x.channel.readyAt(x.proxy.Endpoint())
	})
}

// received waits until the proxy has received more than so many bytes.
func (x *proxiedRPC) received(d leastconntest.Direction, before int64) {
	x.Helper()
	x.wait("bytes from "+d.String(), func() bool { return x.proxy.Bytes(d) > before })
}

// counts checks the counts of a, b and c.
func (x *proxiedRPC) counts(want ...int) {
	x.Helper()
	var got []int
	for _, ep := range x.endpoints() {
		got = append(got, x.channel.inFlightAt(ep))
	}
	require.Equal(x, want, got, "in flight at a, b and c")
}

// start makes the RPC, with a request of so many bytes.
func (x *proxiedRPC) start(size int) {
	client, payload := x.channel.Client(), &grpc_testing.Payload{Body: make([]byte, size)}
	go func() {
		var s grpc.ClientStream
		var err error
		send := func() error { return nil }
		switch x.kind {
		case leastconntest.Unary:
			_, err = client.UnaryCall(x.ctx, &grpc_testing.SimpleRequest{Payload: payload}, x.opts...)
			x.result <- err
			return
		case leastconntest.ClientStream:
			s, err = client.StreamingInputCall(x.ctx, x.opts...)
			send = func() error { return s.SendMsg(&grpc_testing.StreamingInputCallRequest{Payload: payload}) }
		case leastconntest.ServerStream:
			s, err = client.StreamingOutputCall(x.ctx, &grpc_testing.StreamingOutputCallRequest{Payload: payload}, x.opts...)
		case leastconntest.Bidi:
			s, err = client.FullDuplexCall(x.ctx, x.opts...)
			send = func() error { return s.SendMsg(&grpc_testing.StreamingOutputCallRequest{Payload: payload}) }
		}
		if err != nil {
			x.result <- err
			return
		}
		if x.kind != leastconntest.ServerStream {
			go func() {
				if size > 0 {
					_ = send() // the reader learns why it has failed
				}
				<-x.closing
				_ = s.CloseSend()
			}()
		}
		x.result <- x.read(s)
	}()
}

// read reads to the end of the stream.
func (x *proxiedRPC) read(s grpc.ClientStream) error {
	_, _ = s.Header()
	close(x.acked)
	if x.kind == leastconntest.ClientStream {
		return s.RecvMsg(new(grpc_testing.StreamingInputCallResponse))
	}
	return drain(func() (*grpc_testing.StreamingOutputCallResponse, error) {
		m := new(grpc_testing.StreamingOutputCallResponse)
		return m, s.RecvMsg(m)
	})
}

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

// underWay starts the RPC and waits until both sides know of it.
func (x *proxiedRPC) underWay() {
	x.Helper()
	x.start(0)
	require.NoError(x, x.nodes[0].WaitLive(x.env.ctx, 1))
	if x.kind != leastconntest.Unary {
		<-x.acked
	}
}

// complete ends the RPC at a as both sides want it.
func (x *proxiedRPC) complete() {
	x.Helper()
	x.finish()
	x.nodes[0].HoldUnary(false)
	if x.kind == leastconntest.ServerStream {
		// Those that have not come to a yet are not ended.
		x.wait("the end of the RPC", func() bool {
			x.nodes[0].EndStreams()
			return len(x.result) == 1
		})
	}
}

// ends checks how the RPC has ended, and that nothing is left of it.
func (x *proxiedRPC) ends(want codes.Code) {
	x.Helper()
	err := <-x.result
	if want == codes.Unavailable {
		x.broken = 1
	}
	require.Equal(x, want, codeOf(err), "%v", err)
	x.wait("the RPC is given back", func() bool { return x.channel.snapshot().InFlight == 2 })
	x.counts(0, 1, 1)
}

// goesOnAtA checks that the RPC comes to a, and ends it.
func (x *proxiedRPC) goesOnAtA() {
	x.Helper()
	require.NoError(x, x.nodes[0].WaitLive(x.env.ctx, 1))
	x.counts(1, 1, 1)
	x.complete()
	x.ends(codes.OK)
}

// goesOnElsewhere checks that the RPC has moved to b or c, and ends it.
func (x *proxiedRPC) goesOnElsewhere() {
	x.Helper()
	b, c := x.nodes[1], x.nodes[2]
	x.wait("the RPC at b or c", func() bool { return b.Live()+c.Live() == 3 })
	x.broken = 1
	require.Empty(x, x.result)
	x.counts(0, b.Live(), c.Live())
	x.proxy.Heal()
	if x.kind == leastconntest.ServerStream {
		x.cancel() // what ends those at a node ends the one that is held there
		x.ends(codes.Canceled)
		return
	}
	x.finish()
	b.HoldUnary(false)
	c.HoldUnary(false)
	x.ends(codes.OK)
}

// othersTakeTheLoad checks that new streams go to b and c alone, evenly.
func (x *proxiedRPC) othersTakeTheLoad() {
	x.Helper()
	x.wait("a is lost", func() bool { return !x.channel.readyAt(x.proxy.Endpoint()) })
	more, by := x.channel.hold(6)
	require.Equal(x, map[string]int{"b": 3, "c": 3}, by)
	x.counts(0, 4, 4)
	require.NoError(x, leastconntest.EndAll(more))
}

// recovers checks that everything is as if nothing had happened, once the
// network is as it should be.
func (x *proxiedRPC) recovers() {
	x.Helper()
	x.proxy.Heal()
	x.waitReady()
	x.served(x.nodes, 0, 1, 1)
	more, by := x.channel.hold(4)
	require.Equal(x, map[string]int{"a": 2, "b": 1, "c": 1}, by)
	x.served(x.nodes, 2, 2, 2)
	require.NoError(x, leastconntest.EndAll(append(more, x.held...)))
	x.closed()
}

// closed closes the channel and checks that each pick was given back.
func (x *proxiedRPC) closed() {
	x.Helper()
	require.NoError(x, x.channel.Close())
	x.wait("nothing is left in the ledger", func() bool { return len(x.channel.snapshot().Endpoints) == 0 })
	require.Equal(x, x.policy.picks.Load(), x.policy.dones.Load(), "Dones for picks")
}

package leastconnbalancer_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

var kinds = []leastconntest.Kind{leastconntest.Unary, leastconntest.ClientStream, leastconntest.ServerStream, leastconntest.Bidi}

// proxied puts a proxy before the node.
func (l *lab) proxied(n *leastconntest.Node) *leastconntest.Proxy {
	l.Helper()
	p, err := leastconntest.StartProxy(n.Addr())
	require.NoError(l, err)
	l.Cleanup(p.Close)
	return p
}

// crossing is an RPC of a kind that goes to a, through a proxy. The channel also
// has b and c, without a proxy and with a stream on each.
type crossing struct {
	*lab
	kind    leastconntest.Kind
	nodes   []*leastconntest.Node
	proxy   *leastconntest.Proxy
	parent  parent
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

func newCrossing(t *testing.T, kind leastconntest.Kind, cfg leastconntest.ChannelConfig, opts leastconntest.Options) *crossing {
	x := &crossing{lab: newLab(t), kind: kind, acked: make(chan struct{}), closing: make(chan struct{}), result: make(chan error, 1)}
	x.finish = sync.OnceFunc(func() { close(x.closing) })
	t.Cleanup(x.finish)
	x.ctx, x.cancel = context.WithCancel(x.lab.ctx)
	t.Cleanup(x.cancel)
	opts.Name = "a"
	x.nodes = append([]*leastconntest.Node{x.node(opts)}, x.lab.nodes("b", "c")...)
	for _, n := range x.nodes {
		n.HoldUnary(true)
	}
	x.proxy = x.proxied(x.nodes[0])
	x.channel = x.dialParent(&x.parent, cfg, x.nodes[1:]...)
	x.held, _ = x.channel.hold(2)
	require.NoError(x, x.channel.Update(x.endpoints()...))
	x.waitReady()
	// A server speaks first: that the client can use it does not mean that it has
	// heard the client.
	x.received(leastconntest.ServerToClient, handshake-1)
	return x
}

func (x *crossing) endpoints() []resolver.Endpoint {
	return append([]resolver.Endpoint{x.proxy.Endpoint()}, leastconntest.Endpoints(x.nodes[1:]...)...)
}

// waitReady waits until the channel can use a, by a connection that is not known
// to have broken.
func (x *crossing) waitReady() {
	x.Helper()
	x.wait("a is ready", func() bool {
		return x.proxy.Accepted() > x.broken && x.channel.readyAt(x.proxy.Endpoint())
	})
}

// counts checks the counts of a, b and c.
func (x *crossing) counts(want ...int) {
	x.Helper()
	var got []int
	for _, ep := range x.endpoints() {
		got = append(got, x.channel.inFlightAt(ep))
	}
	require.Equal(x, want, got, "in flight at a, b and c")
}

// start makes the RPC, with a request of so many bytes.
func (x *crossing) start(size int) {
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
			go x.write(s, send, size > 0)
		}
		x.result <- x.read(s)
	}()
}

// write sends the request, if there is one, and half-closes when told to.
func (x *crossing) write(s grpc.ClientStream, send func() error, request bool) {
	if request {
		_ = send() // the reader learns why it has failed
	}
	<-x.closing
	_ = s.CloseSend()
}

// read reads to the end of the stream.
func (x *crossing) read(s grpc.ClientStream) error {
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

// underWay starts the RPC and waits until both sides know of it.
func (x *crossing) underWay() {
	x.Helper()
	x.start(0)
	require.NoError(x, x.nodes[0].WaitLive(x.lab.ctx, 1))
	if x.kind != leastconntest.Unary {
		<-x.acked
	}
}

// complete ends the RPC at a as both sides want it.
func (x *crossing) complete() {
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
func (x *crossing) ends(want codes.Code) {
	x.Helper()
	err := <-x.result
	if want == codes.Unavailable {
		x.broken = 1
	}
	require.Equal(x, want, status.Code(err), "%v", err)
	x.wait("the RPC is given back", func() bool { return x.channel.snapshot().InFlight == 2 })
	x.counts(0, 1, 1)
}

// recovers checks that everything is as if nothing had happened, once the
// network is as it should be.
func (x *crossing) recovers() {
	x.Helper()
	x.proxy.Heal()
	x.waitReady()
	x.served(x.nodes, 0, 1, 1)
	more, by := x.channel.hold(4)
	require.Equal(x, map[string]int{"a": 2, "b": 1, "c": 1}, by)
	x.counts(2, 2, 2)
	x.served(x.nodes, 2, 2, 2)
	require.NoError(x, leastconntest.EndAll(append(more, x.held...)))
	x.counts(0, 0, 0)
	require.NoError(x, x.channel.Close())
	require.Equal(x, x.parent.picks.Load(), x.parent.dones.Load(), "Dones for picks")
	require.Empty(x, x.channel.snapshot().Endpoints, "what is left in the ledger")
}

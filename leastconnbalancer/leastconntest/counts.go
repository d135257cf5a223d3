package leastconntest

import (
	"context"
	"sync/atomic"
)

// Kind is one of gRPC's four kinds of RPC.
type Kind int

// The kinds of RPC, by who streams.
const (
	Unary Kind = iota
	ClientStream
	ServerStream
	Bidi
	kinds // how many there are
)

// String names the kind as gRPC's documentation does.
func (k Kind) String() string {
	switch k {
	case Unary:
		return "unary"
	case ClientStream:
		return "client-streaming"
	case ServerStream:
		return "server-streaming"
	case Bidi:
		return "bidirectional"
	default:
		return "unknown"
	}
}

// rpcCounts counts RPC attempts of the test service by kind.
type rpcCounts struct {
	live    [kinds]atomic.Int64
	started [kinds]atomic.Int64
}

// enter counts an RPC in; the function it returns counts it out.
func (t *rpcCounts) enter(k Kind) (leave func()) {
	t.started[k].Add(1)
	t.live[k].Add(1)
	return func() { t.live[k].Add(-1) }
}

// Live is how many RPCs of the test service, unary ones included, are being handled right now. An RPC is counted out
// before its client can learn that it has ended, unless the client itself cancels it.
func (n *Node) Live() int { return n.LiveOf(Unary, ClientStream, ServerStream, Bidi) }

// LiveOf is Live for the given kinds of RPC.
func (n *Node) LiveOf(of ...Kind) int { return sum(&n.rpcs.live, of) }

// HeldStreams is how many streaming RPCs of any kind are being handled right now.
func (n *Node) HeldStreams() int { return n.LiveOf(ClientStream, ServerStream, Bidi) }

// Started is how many RPC attempts of the test service have reached the node so far, those it failed included.
func (n *Node) Started() int { return n.StartedOf(Unary, ClientStream, ServerStream, Bidi) }

// StartedOf is Started for the given kinds of RPC.
func (n *Node) StartedOf(of ...Kind) int { return sum(&n.rpcs.started, of) }

func sum(counts *[kinds]atomic.Int64, of []Kind) int {
	total := 0
	for _, k := range of {
		total += int(counts[k].Load())
	}
	return total
}

// Conns is how many TCP connections the node has accepted so far.
func (n *Node) Conns() int { return int(n.conns.accepted.Load()) }

// OpenConns is how many TCP connections are open now. A connection may be open before its client can use it.
func (n *Node) OpenConns() int { return int(n.conns.open.Load()) }

// WaitLive waits until Live is want.
func (n *Node) WaitLive(ctx context.Context, want int) error {
	return WaitFor(ctx, "live RPCs on node "+n.Name(), func() bool { return n.Live() == want })
}

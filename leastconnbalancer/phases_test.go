package leastconnbalancer_test

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// phase is a part of the life of an RPC that has been picked.
type phase struct {
	name string
	// reach starts the RPC and holds it in the phase, by silence of the network
	// where needed.
	reach func(*crossing)
	// late is set when the client has a stream's header by then.
	late bool
	// deaf is set when nothing comes from the server.
	deaf bool
	only []leastconntest.Kind // default: all kinds
}

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

var phases = []phase{
	{name: "before the server sees it", reach: func(x *crossing) {
		x.proxy.HalfOpen(leastconntest.ClientToServer, true)
		before := x.proxy.Bytes(leastconntest.ClientToServer)
		x.start(0)
		x.received(leastconntest.ClientToServer, before+upkeep)
		require.Zero(x, x.nodes[0].Started())
	}},
	{name: "while the request is sent", deaf: true, reach: func(x *crossing) {
		x.proxy.HalfOpen(leastconntest.ServerToClient, true)
		before := x.proxy.Bytes(leastconntest.ClientToServer)
		x.start(2 * window)
		x.received(leastconntest.ClientToServer, before+window)
	}},
	{name: "before the first response", deaf: true, reach: func(x *crossing) {
		x.proxy.HalfOpen(leastconntest.ServerToClient, true)
		x.start(0)
		require.NoError(x, x.nodes[0].WaitLive(x.lab.ctx, 1))
	}},
	{name: "under way", late: true, reach: (*crossing).underWay},
	{name: "half-close", late: true, only: []leastconntest.Kind{leastconntest.ClientStream, leastconntest.Bidi}, reach: func(x *crossing) {
		x.underWay()
		x.proxy.HalfOpen(leastconntest.ClientToServer, true)
		before := x.proxy.Bytes(leastconntest.ClientToServer)
		x.finish()
		x.received(leastconntest.ClientToServer, before)
		require.Equal(x, 1, x.nodes[0].Live())
	}},
	{name: "trailers on the way", late: true, deaf: true, reach: func(x *crossing) {
		x.underWay()
		x.proxy.HalfOpen(leastconntest.ServerToClient, true)
		before := x.proxy.Bytes(leastconntest.ServerToClient)
		x.finish()
		x.nodes[0].HoldUnary(false)
		if x.kind == leastconntest.ServerStream {
			x.nodes[0].EndStreams()
		}
		require.NoError(x, x.nodes[0].WaitLive(x.lab.ctx, 0))
		x.received(leastconntest.ServerToClient, before)
	}},
}

// received waits until the proxy has received more than so many bytes.
func (x *crossing) received(d leastconntest.Direction, before int64) {
	x.Helper()
	x.wait("bytes from "+d.String(), func() bool { return x.proxy.Bytes(d) > before })
}

// committed reports whether gRPC does not retry an RPC of the kind any more.
func (p phase) committed(k leastconntest.Kind) bool { return p.late && k != leastconntest.Unary }

// eachPhase calls test with the kinds of RPC that have the phase.
func eachPhase(test func(p phase, k leastconntest.Kind)) {
	for _, p := range phases {
		for _, k := range kinds {
			if p.only == nil || slices.Contains(p.only, k) {
				test(p, k)
			}
		}
	}
}

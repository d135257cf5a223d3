package leastconnbalancer_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// phase is a part of the life of an RPC that has been picked.
type phase struct {
	name string
	// reach starts the RPC and holds it in the phase, by silence of the network
	// where needed.
	reach func(*proxiedRPC)
	// late is set when the client has a stream's header by then.
	late bool
	only []leastconntest.Kind // default: twoKinds
}

var phases = []phase{
	{name: "before the server sees it", reach: func(x *proxiedRPC) {
		x.proxy.HalfOpen(leastconntest.ClientToServer, true)
		before := x.proxy.Bytes(leastconntest.ClientToServer)
		x.start(0)
		x.received(leastconntest.ClientToServer, before+upkeep)
		require.Zero(x, x.nodes[0].Started())
	}},
	{name: "while the request is sent", reach: func(x *proxiedRPC) {
		x.proxy.HalfOpen(leastconntest.ServerToClient, true)
		before := x.proxy.Bytes(leastconntest.ClientToServer)
		x.start(2 * window)
		x.received(leastconntest.ClientToServer, before+window)
	}},
	{name: "before the first response", reach: func(x *proxiedRPC) {
		x.proxy.HalfOpen(leastconntest.ServerToClient, true)
		x.start(0)
		require.NoError(x, x.nodes[0].WaitLive(x.env.ctx, 1))
	}},
	{name: "under way", late: true, reach: (*proxiedRPC).underWay, only: kinds},
	{name: "half-close", late: true, only: []leastconntest.Kind{leastconntest.ClientStream, leastconntest.Bidi}, reach: func(x *proxiedRPC) {
		x.underWay()
		x.proxy.HalfOpen(leastconntest.ClientToServer, true)
		before := x.proxy.Bytes(leastconntest.ClientToServer)
		x.finish()
		x.received(leastconntest.ClientToServer, before)
		require.Equal(x, 1, x.nodes[0].Live())
	}},
	{name: "trailers on the way", late: true, reach: func(x *proxiedRPC) {
		x.underWay()
		x.proxy.HalfOpen(leastconntest.ServerToClient, true)
		before := x.proxy.Bytes(leastconntest.ServerToClient)
		x.finish()
		x.nodes[0].HoldUnary(false)
		require.NoError(x, x.nodes[0].WaitLive(x.env.ctx, 0))
		x.received(leastconntest.ServerToClient, before)
	}},
}

// kindsOf are the kinds of RPC that are tried in the phase.
func (p phase) kindsOf() []leastconntest.Kind {
	if p.only != nil {
		return p.only
	}
	return twoKinds
}

// committed reports whether gRPC does not retry an RPC of the kind any more.
func (p phase) committed(k leastconntest.Kind) bool { return p.late && k != leastconntest.Unary }

// eachPhase runs a test on an RPC in each phase of its life.
func eachPhase(t *testing.T, cfg leastconntest.ChannelConfig, test func(*proxiedRPC, phase)) {
	t.Parallel()
	for _, p := range phases {
		for _, k := range p.kindsOf() {
			t.Run(p.name+"/"+k.String(), func(t *testing.T) {
				cfg := cfg
				cfg.DialOptions = slices.Clone(cfg.DialOptions)
				x := newProxiedRPC(parallelEnv(t), k, cfg)
				p.reach(x)
				x.counts(1, 1, 1)
				test(x, p)
			})
		}
	}
}

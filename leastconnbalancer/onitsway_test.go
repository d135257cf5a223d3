package leastconnbalancer_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// lost is what may happen to a connection between an RPC's pick and its stream,
// and what becomes of the RPC then.
var lost = map[string]struct {
	// strike comes before the RPC asks for its stream, what it returns after that.
	strike func(*crossing) (after func())
	end    func(*crossing)
}{
	"reset": {
		strike: func(x *crossing) (after func()) {
			x.proxy.Reset()
			x.wait("a new connection to a", func() bool { return x.proxy.Accepted() == 2 })
			x.waitReady()
			return nil
		},
		end: (*crossing).goesOnAtA,
	},
	"reset while the node refuses": {
		strike: func(x *crossing) (after func()) {
			x.proxy.Refuse(true)
			x.proxy.Reset()
			x.wait("a is lost", func() bool { return !x.channel.readyAt(x.proxy.Endpoint()) })
			return nil
		},
		end: (*crossing).goesOnElsewhere,
	},
	"reset, then the node leaves": {
		strike: func(x *crossing) (after func()) {
			x.proxy.Refuse(true)
			x.proxy.Reset()
			x.wait("a is lost", func() bool { return !x.channel.readyAt(x.proxy.Endpoint()) })
			x.channel.update(x.nodes[1:]...)
			return nil
		},
		end: func(x *crossing) {
			x.wait("the RPC at b or c", func() bool { return x.nodes[1].Live()+x.nodes[2].Live() == 3 })
			require.NoError(x, x.channel.Update(x.endpoints()...))
			x.goesOnElsewhere()
		},
	},
	"blackhole, cancelled before": {
		strike: func(x *crossing) (after func()) {
			x.proxy.Blackhole(true)
			x.cancel()
			return nil
		},
		end: func(x *crossing) { x.ends(codes.Canceled) },
	},
	"blackhole, cancelled after": {
		strike: func(x *crossing) (after func()) {
			x.proxy.Blackhole(true)
			before := x.proxy.Bytes(leastconntest.ClientToServer)
			return func() {
				x.received(leastconntest.ClientToServer, before)
				x.cancel()
			}
		},
		end: func(x *crossing) { x.ends(codes.Canceled) },
	},
	"blackhole that ends": {
		strike: func(x *crossing) (after func()) {
			x.proxy.Blackhole(true)
			return x.proxy.Heal
		},
		end: (*crossing).goesOnAtA,
	},
}

// A pick counts before it has a stream, and is given back when it gets none.
func TestConnectionLostBetweenPickAndStream(t *testing.T) {
	for name, f := range lost {
		for _, k := range kinds {
			t.Run(name+"/"+k.String(), func(t *testing.T) {
				x := newCrossing(t, k, quickly(), leastconntest.Options{})
				creds := slowCreds{make(chan struct{}, 10), make(chan struct{})}
				x.opts = append(x.opts, grpc.PerRPCCredentials(creds))
				x.start(0)
				<-creds.asked
				x.counts(1, 1, 1)
				after := f.strike(x)
				x.counts(1, 1, 1)
				close(creds.answer)
				if after != nil {
					after()
				}
				f.end(x)
				x.recovers()
			})
		}
	}
}

// goesOnAtA checks that the RPC comes to a, and ends it.
func (x *crossing) goesOnAtA() {
	x.Helper()
	require.NoError(x, x.nodes[0].WaitLive(x.lab.ctx, 1))
	x.counts(1, 1, 1)
	x.complete()
	x.ends(codes.OK)
}

// An RPC that waits for its turn on a connection counts, goes elsewhere when the
// connection breaks, and can be cancelled when it falls silent.
func TestConnectionLostWhileWaitingForATurn(t *testing.T) {
	for _, k := range kinds {
		for name, silent := range map[string]bool{"reset": false, "blackhole": true} {
			t.Run(name+"/"+k.String(), func(t *testing.T) {
				x := newCrossing(t, k, quickly(), leastconntest.Options{ServerOptions: []grpc.ServerOption{grpc.MaxConcurrentStreams(1)}})
				heavy := x.endpoints()
				heavy[0] = lcresolver.SetWeight(heavy[0], 9)
				require.NoError(t, x.channel.Update(heavy...))
				first, by := x.channel.hold(1)
				require.Equal(t, map[string]int{"a": 1}, by)
				x.start(0)
				x.wait("the RPC is picked", func() bool { return x.channel.snapshot().InFlight == 4 })
				x.counts(2, 1, 1)
				require.Equal(t, 1, x.nodes[0].Started())
				if silent {
					x.proxy.Blackhole(true)
					first[0].Cancel()
					x.counts(1, 1, 1)
					x.cancel()
					x.ends(codes.Canceled)
				} else {
					x.proxy.Refuse(true)
					x.proxy.Reset()
					require.Equal(t, codes.Unavailable, codeOf(first[0].Wait()))
					x.goesOnElsewhere()
				}
				require.NoError(t, x.channel.Update(x.endpoints()...))
				x.proxy.Heal()
				x.waitReady()
			})
		}
	}
}

// The last RPC of a node that has left while nothing got through takes the node
// with it.
func TestNodeLeavesInABlackhole(t *testing.T) {
	eachPhase(func(p phase, k leastconntest.Kind) {
		t.Run(p.name+"/"+k.String(), func(t *testing.T) {
			x := newCrossing(t, k, quickly(), leastconntest.Options{})
			p.reach(x)
			x.proxy.Blackhole(true)
			x.channel.update(x.nodes[1:]...)
			x.counts(1, 1, 1)
			x.cancel()
			require.Equal(t, codes.Canceled, codeOf(<-x.result))
			x.wait("a is forgotten", func() bool { return len(x.channel.snapshot().Endpoints) == 2 })
			require.NoError(t, x.channel.Update(x.endpoints()...))
			x.recovers()
		})
	})
}

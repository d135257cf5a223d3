package leastconnbalancer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// Whatever becomes of the connection, in whichever phase of an RPC, the RPC is
// given back once.
func TestConnectionFailsInEachPhase(t *testing.T) {
	for name, fault := range map[string]struct {
		strike func(*proxiedRPC)
		code   codes.Code // how the RPC ends of it
	}{
		"reset": {func(x *proxiedRPC) { x.proxy.Reset() }, codes.Unavailable},
		"reset while the node refuses": {func(x *proxiedRPC) {
			x.proxy.Refuse(true)
			x.proxy.Reset()
		}, codes.Unavailable},
		"blackhole, cancelled": {func(x *proxiedRPC) {
			x.proxy.Blackhole(true)
			x.cancel()
		}, codes.Canceled},
		"blackhole that ends": {func(x *proxiedRPC) {
			x.proxy.Blackhole(true)
			x.proxy.Heal()
			x.complete()
		}, codes.OK},
		"slow link": {func(x *proxiedRPC) {
			x.proxy.Heal()
			x.proxy.SetDelay(2 * time.Millisecond)
			x.proxy.SetRate(1 << 20)
			x.complete()
		}, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			eachPhase(t, quickly(), func(x *proxiedRPC, _ phase) {
				fault.strike(x)
				x.ends(fault.code)
				x.recovers()
			})
		})
	}
}

// With retries the RPC goes on elsewhere, unless the client has part of the
// response, and is counted there.
func TestRetriedWhenTheConnectionDies(t *testing.T) {
	eachPhase(t, retrying(4), func(x *proxiedRPC, p phase) {
		x.proxy.Reset()
		if p.committed(x.kind) {
			x.ends(codes.Unavailable)
		} else {
			x.goesOnElsewhere()
		}
		x.recovers()
	})
}

// The last RPC of a node that has left while nothing got through takes the node
// with it.
func TestNodeLeavesInABlackhole(t *testing.T) {
	eachPhase(t, quickly(), func(x *proxiedRPC, _ phase) {
		x.proxy.Blackhole(true)
		x.channel.update(x.nodes[1:]...)
		x.counts(1, 1, 1)
		x.cancel()
		require.Equal(x, codes.Canceled, codeOf(<-x.result))
		x.wait("a is forgotten", func() bool { return len(x.channel.snapshot().Endpoints) == 2 })
		require.NoError(x, x.channel.Update(x.endpoints()...))
		x.recovers()
	})
}

// A channel that is closed does not wait for the network, nor do its counts.
func TestChannelClosedInABlackhole(t *testing.T) {
	eachPhase(t, quickly(), func(x *proxiedRPC, _ phase) {
		x.proxy.Blackhole(true)
		x.closed()
		require.Equal(x, codes.Canceled, codeOf(<-x.result))
		x.proxy.Heal()
		x.served(x.nodes, 0, 0, 0)
	})
}

// A connection that says nothing any more ends its RPCs, in whichever phase they
// are, when one side gives up; until then each counts, and then none. They all
// wait at the same time, for the shortest times of silence that gRPC allows, 10 s for a
// client and 1 s for a server; a busy machine has longer for the answer, at b and c too.
func TestSilentConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	client := quickly()
	client.DialOptions = append(client.DialOptions, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 15 * time.Second}))
	server := grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Second, Timeout: 15 * time.Second})
	type silentRPC struct {
		*proxiedRPC
		talk *workers // streams at b and c, which a client that hears of them does not doubt
	}
	var silent []silentRPC
	silence := func(p phase, k leastconntest.Kind, cfg leastconntest.ChannelConfig, strike func(*leastconntest.Proxy), opts ...grpc.ServerOption) {
		x := newProxiedRPC(newEnv(t), k, cfg, opts...)
		p.reach(x)
		x.counts(1, 1, 1)
		strike(x.proxy)
		silent = append(silent, silentRPC{x, x.workers(1, func(context.Context, int) error {
			time.Sleep(time.Second)
			return leastconntest.PingAll(x.held)
		})})
	}
	for _, p := range phases {
		for _, k := range p.kindsOf() {
			silence(p, k, client, hindrances["blackhole"])
		}
	}
	underWay := phase{reach: (*proxiedRPC).underWay}
	for _, k := range twoKinds {
		silence(underWay, k, client, hindrances["deaf server"])
		silence(underWay, k, client, hindrances["no SETTINGS"])
		silence(underWay, k, quickly(), hindrances["deaf server"], server)
	}
	for _, x := range silent {
		x.ends(codes.Unavailable)
		x.talk.stop()
		x.othersTakeTheLoad()
		x.recovers()
	}
}

// hindrances keep a client from having a connection.
var hindrances = map[string]func(*leastconntest.Proxy){
	"blackhole":   func(p *leastconntest.Proxy) { p.Blackhole(true) },
	"deaf server": func(p *leastconntest.Proxy) { p.HalfOpen(leastconntest.ClientToServer, true) },
	"no SETTINGS": func(p *leastconntest.Proxy) { p.HalfOpen(leastconntest.ServerToClient, true) },
	"refused":     func(p *leastconntest.Proxy) { p.Refuse(true) },
	"very slow":   func(p *leastconntest.Proxy) { p.SetDelay(time.Hour) },
	"trickle": func(p *leastconntest.Proxy) {
		p.SetRate(1)
		p.SetDelay(time.Minute) // a handshake is short: it trickles through in some 10 s
	},
	"reset halfway": func(p *leastconntest.Proxy) { p.HalfOpen(leastconntest.ServerToClient, true) },
}

// While a connection is not to be had the others take all; without others RPCs
// wait and are not counted. They go there once it can be had. A channel that is
// closed meanwhile does not wait for the network.
func TestConnectionThatIsNotToBeHad(t *testing.T) {
	t.Parallel()
	for name, hinder := range hindrances {
		t.Run(name, func(t *testing.T) {
			x := newProxiedRPC(parallelEnv(t), leastconntest.Bidi, quickly())
			hinder(x.proxy)
			x.proxy.Reset()
			x.othersTakeTheLoad()
			require.NoError(t, x.channel.Update(x.proxy.Endpoint()))
			x.opts = append(x.opts, grpc.WaitForReady(true))
			x.start(0)
			if name == "reset halfway" {
				for range 3 {
					before := x.proxy.Accepted()
					x.proxy.Reset()
					x.wait("the channel connects again", func() bool { return x.proxy.Accepted() > before })
				}
			}
			require.Equal(x, codes.DeadlineExceeded, x.channel.brief(grpc.WaitForReady(true)))
			x.counts(0, 1, 1)
			cfg := quickly()
			cfg.Endpoints = []resolver.Endpoint{x.proxy.Endpoint()}
			other, before := x.unused(cfg), x.proxy.Accepted()
			waiting := x.async(func() (string, error) { return other.Unary(x.env.ctx, grpc.WaitForReady(true)) })
			x.wait("the other channel connects", func() bool { return x.proxy.Accepted() > before })
			require.NoError(t, other.Close())
			require.Equal(t, codes.Canceled, codeOf((<-waiting).err))
			x.proxy.Heal()
			require.NoError(t, x.nodes[0].WaitLive(x.env.ctx, 1))
			x.counts(1, 1, 1)
			require.NoError(t, x.channel.Update(x.endpoints()...))
			x.channel.waitReady(x.nodes[1:]...)
			x.complete()
			x.ends(codes.OK)
			x.recovers()
			x.wait("no connection is left", func() bool { return x.proxy.Conns() == 0 })
		})
	}
}

// A pick counts before it has a stream, and is given back when it gets none.
func TestConnectionLostBetweenPickAndStream(t *testing.T) {
	t.Parallel()
	lost := func(x *proxiedRPC) {
		x.proxy.Refuse(true)
		x.proxy.Reset()
		x.wait("a is lost", func() bool { return !x.channel.readyAt(x.proxy.Endpoint()) })
	}
	for name, f := range map[string]struct {
		before, after func(*proxiedRPC) // the RPC asks for its stream
	}{
		"reset": {func(x *proxiedRPC) {
			x.proxy.Reset()
			x.wait("a new connection to a", func() bool { return x.proxy.Accepted() == 2 })
			x.waitReady()
		}, (*proxiedRPC).goesOnAtA},
		"reset while the node refuses": {lost, (*proxiedRPC).goesOnElsewhere},
		"reset, then the node leaves": {func(x *proxiedRPC) {
			lost(x)
			x.channel.update(x.nodes[1:]...)
		}, func(x *proxiedRPC) {
			x.wait("the RPC at b or c", func() bool { return x.nodes[1].Live()+x.nodes[2].Live() == 3 })
			require.NoError(x, x.channel.Update(x.endpoints()...))
			x.goesOnElsewhere()
		}},
		"cancelled before": {func(x *proxiedRPC) {
			x.proxy.Blackhole(true)
			x.cancel()
		}, func(x *proxiedRPC) { x.ends(codes.Canceled) }},
		"blackhole that ends": {func(x *proxiedRPC) { x.proxy.Blackhole(true) }, func(x *proxiedRPC) {
			x.proxy.Heal()
			x.goesOnAtA()
		}},
	} {
		for _, k := range twoKinds {
			t.Run(name+"/"+k.String(), func(t *testing.T) {
				x := newProxiedRPC(parallelEnv(t), k, quickly())
				creds := newSlowCreds()
				x.opts = append(x.opts, grpc.PerRPCCredentials(creds))
				x.start(0)
				<-creds.asked
				x.counts(1, 1, 1)
				f.before(x)
				x.counts(1, 1, 1)
				close(creds.answer)
				f.after(x)
				x.recovers()
			})
		}
	}
}

// An RPC that waits for its turn on a connection counts, goes elsewhere when the
// connection breaks, and can be cancelled when it falls silent.
func TestConnectionLostWhileWaitingForATurn(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"reset": false, "blackhole": true} {
		t.Run(name, func(t *testing.T) {
			cfg := quickly()
			cfg.ServiceConfig = selecting(`{"failurePenalty":"0s","streamLimit":"ignore"}`)
			x := newProxiedRPC(parallelEnv(t), leastconntest.Bidi, cfg, grpc.MaxConcurrentStreams(1))
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
				x.proxy.Heal()
				return
			}
			x.proxy.Refuse(true)
			x.proxy.Reset()
			require.Equal(t, codes.Unavailable, codeOf(first[0].Wait()))
			x.goesOnElsewhere()
		})
	}
}

package leastconnbalancer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// fault is something that happens on the way between client and server.
type fault struct {
	name   string
	strike func(*crossing)
	code   codes.Code // how the RPC ends of it
}

var faults = []fault{
	{"reset", func(x *crossing) { x.proxy.Reset() }, codes.Unavailable},
	{"reset while the node refuses", func(x *crossing) {
		x.proxy.Refuse(true)
		x.proxy.Reset()
	}, codes.Unavailable},
	{"blackhole, cancelled", func(x *crossing) {
		x.proxy.Blackhole(true)
		x.cancel()
	}, codes.Canceled},
	{"blackhole that ends", func(x *crossing) {
		x.proxy.Blackhole(true)
		x.proxy.Heal()
		x.complete()
	}, codes.OK},
	{"slow link", func(x *crossing) {
		x.proxy.Heal()
		x.proxy.SetDelay(2 * time.Millisecond)
		x.proxy.SetRate(1 << 20)
		x.complete()
	}, codes.OK},
}

// Whatever becomes of the connection, in whichever phase of an RPC, the RPC is
// given back once.
func TestConnectionDiesInEachPhase(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			eachPhase(func(p phase, k leastconntest.Kind) {
				t.Run(p.name+"/"+k.String(), func(t *testing.T) {
					x := newCrossing(t, k, quickly(), leastconntest.Options{})
					p.reach(x)
					x.counts(1, 1, 1)
					f.strike(x)
					x.ends(f.code)
					x.recovers()
				})
			})
		})
	}
}

// With retries the RPC goes on elsewhere, unless the client has part of the
// response, and is counted there.
func TestRetriedWhenTheConnectionDies(t *testing.T) {
	cfg := quickly()
	cfg.ServiceConfig = retrying(4).ServiceConfig
	eachPhase(func(p phase, k leastconntest.Kind) {
		t.Run(p.name+"/"+k.String(), func(t *testing.T) {
			x := newCrossing(t, k, cfg, leastconntest.Options{})
			p.reach(x)
			x.counts(1, 1, 1)
			x.proxy.Reset()
			if p.committed(k) {
				x.ends(codes.Unavailable)
			} else {
				x.goesOnElsewhere()
			}
			x.recovers()
		})
	})
}

// goesOnElsewhere checks that the RPC has moved to b or c, and ends it.
func (x *crossing) goesOnElsewhere() {
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
	x.release(b, c)
	x.ends(codes.OK)
}

// A channel that is closed does not wait for the network, nor do its counts.
func TestChannelClosedInABlackhole(t *testing.T) {
	eachPhase(func(p phase, k leastconntest.Kind) {
		t.Run(p.name+"/"+k.String(), func(t *testing.T) {
			x := newCrossing(t, k, leastconntest.ChannelConfig{}, leastconntest.Options{})
			p.reach(x)
			x.proxy.Blackhole(true)
			x.counts(1, 1, 1)
			require.NoError(t, x.channel.Close())
			require.Equal(t, codes.Canceled, codeOf(<-x.result))
			x.wait("nothing is left in the ledger", func() bool { return len(x.channel.snapshot().Endpoints) == 0 })
			x.proxy.Heal()
			x.served(x.nodes, 0, 0, 0)
		})
	})
}

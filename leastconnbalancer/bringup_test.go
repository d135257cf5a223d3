package leastconnbalancer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// hindrances keep a client from having a connection.
var hindrances = map[string]func(*leastconntest.Proxy){
	"blackhole":     func(p *leastconntest.Proxy) { p.Blackhole(true) },
	"deaf server":   func(p *leastconntest.Proxy) { p.HalfOpen(leastconntest.ClientToServer, true) },
	"no SETTINGS":   func(p *leastconntest.Proxy) { p.HalfOpen(leastconntest.ServerToClient, true) },
	"refused":       func(p *leastconntest.Proxy) { p.Refuse(true) },
	"very slow":     func(p *leastconntest.Proxy) { p.SetDelay(time.Hour) },
	"trickle":       func(p *leastconntest.Proxy) { p.SetRate(1) },
	"reset halfway": func(p *leastconntest.Proxy) { p.HalfOpen(leastconntest.ServerToClient, true) },
}

// While a connection is not to be had the others take all; without others RPCs
// wait and are not counted. They go there once it can be had.
func TestConnectionThatIsNotToBeHad(t *testing.T) {
	for name, hinder := range hindrances {
		for _, k := range kinds {
			t.Run(name+"/"+k.String(), func(t *testing.T) {
				x := newCrossing(t, k, quickly(), leastconntest.Options{})
				hinder(x.proxy)
				x.proxy.Reset()
				x.othersTakeTheLoad()
				require.NoError(t, x.channel.Update(x.proxy.Endpoint()))
				x.opts = append(x.opts, grpc.WaitForReady(true))
				x.start(0)
				if name == "reset halfway" {
					for range 5 {
						before := x.proxy.Accepted()
						x.proxy.Reset()
						x.wait("the channel connects again", func() bool { return x.proxy.Accepted() > before })
					}
				}
				x.staysWaiting()
				x.counts(0, 1, 1)

				x.proxy.Heal()
				require.NoError(t, x.nodes[0].WaitLive(x.lab.ctx, 1))
				x.counts(1, 1, 1)
				require.NoError(t, x.channel.Update(x.endpoints()...))
				x.channel.waitReady(x.nodes[1:]...)
				x.complete()
				x.ends(codes.OK)
				x.recovers()
			})
		}
	}
}

// staysWaiting checks that an RPC that waits for a connection gets none.
func (x *crossing) staysWaiting() {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.lab.ctx, 20*time.Millisecond)
	defer cancel()
	_, err := x.channel.Unary(ctx, grpc.WaitForReady(true))
	require.Equal(x, codes.DeadlineExceeded, codeOf(err), "%v", err)
	require.Empty(x, x.result)
}

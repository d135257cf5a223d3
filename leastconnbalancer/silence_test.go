package leastconnbalancer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// silence is how a network falls silent, and who gives up.
type silence struct {
	name     string
	deadline time.Duration // of the RPC
	client   keepalive.ClientParameters
	server   keepalive.ServerParameters
	strike   func(*leastconntest.Proxy)
	code     codes.Code
	heard    bool // only what the server sends is heard
}

// pinging finds out after 10 s, the shortest time that gRPC allows a client,
// and answering after 1 s, the shortest for a server.
var (
	pinging   = keepalive.ClientParameters{Time: 10 * time.Second, Timeout: time.Second}
	answering = keepalive.ServerParameters{Time: time.Second, Timeout: 200 * time.Millisecond}
)

var silences = []silence{
	{name: "blackhole, keepalive", client: pinging, strike: hindrances["blackhole"], code: codes.Unavailable},
	{name: "deaf server, keepalive", client: pinging, strike: hindrances["deaf server"], code: codes.Unavailable},
	{name: "deaf client, keepalive", client: pinging, strike: hindrances["no SETTINGS"], code: codes.Unavailable},
	{name: "blackhole, deadline", deadline: 5 * time.Second, strike: hindrances["blackhole"], code: codes.DeadlineExceeded},
	{name: "deaf server, server's keepalive", server: answering, strike: hindrances["deaf server"], code: codes.Unavailable, heard: true},
}

// A connection that says nothing any more ends its RPCs, in whichever phase they
// are, when one side gives up; until then each counts, and then none. They all
// wait at the same time.
func TestSilentConnectionInEachPhase(t *testing.T) {
	type cell struct {
		*crossing
		silence
		name string
		stop func()
	}
	var cells []cell
	for _, s := range silences {
		eachPhase(func(p phase, k leastconntest.Kind) {
			if s.heard && p.deaf {
				return
			}
			x := newCrossing(t, k, s.config(), leastconntest.Options{ServerOptions: []grpc.ServerOption{grpc.KeepaliveParams(s.server)}})
			if s.deadline > 0 {
				x.ctx, x.cancel = context.WithTimeout(x.lab.ctx, s.deadline)
				t.Cleanup(x.cancel)
			}
			p.reach(x)
			s.strike(x.proxy)
			cells = append(cells, cell{x, s, s.name + "/" + p.name + "/" + k.String(), x.talking()})
			x.counts(1, 1, 1)
		})
	}
	for _, c := range cells {
		t.Run(c.name, func(t *testing.T) {
			c.lab.T = t
			c.ends(c.code)
			c.stop()
			if c.client.Time > 0 {
				c.othersTakeTheLoad()
			}
			c.recovers()
		})
	}
}

func (s silence) config() leastconntest.ChannelConfig {
	cfg := quickly()
	if s.client.Time > 0 {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithKeepaliveParams(s.client))
	}
	return cfg
}

// talking lets the streams at b and c talk until stop is called. A client that
// hears of a server does not ask whether it is alive, and so cannot wait for the
// answer in vain while the machine is busy.
func (x *crossing) talking() (stop func()) {
	quit, result := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var err error
		for err == nil {
			select {
			case <-tick.C:
				err = leastconntest.PingAll(x.held)
			case <-quit:
				result <- nil
				return
			}
		}
		result <- err
	}()
	return func() {
		x.Helper()
		close(quit)
		require.NoError(x, <-result)
	}
}

// othersTakeTheLoad checks that new streams go to b and c alone, evenly.
func (x *crossing) othersTakeTheLoad() {
	x.Helper()
	x.wait("a is lost", func() bool { return !x.channel.readyAt(x.proxy.Endpoint()) })
	more, by := x.channel.hold(6)
	require.Equal(x, map[string]int{"b": 3, "c": 3}, by)
	x.counts(0, 4, 4)
	require.NoError(x, leastconntest.EndAll(more))
}

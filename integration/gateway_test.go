package integration

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// A proxy in front of many nodes is one endpoint: it gets the share of one,
// however often the list has its address, and spreads it as it likes. A weight
// gives it more.
func TestGatewayIsOneEndpoint(t *testing.T) {
	each(t, proxies, func(t *testing.T, k kind) {
		ns := startNodes(t, "near", "pod1", "pod2", "pod3")
		p := startProxy(t, k, settings{}, all(ns[1:]...)...)
		e := dialReady(t, ns[0], p)
		e.list(p, ns[0], p, p)
		first := e.hold(6, map[string]int{"near": 3, "pod1": 1, "pod2": 1, "pod3": 1})
		e.counts(3, 3)
		begun, _ := e.conns.of(p)
		require.Equal(t, 1, begun, "connections to the gateway")

		eps := endpointsOf(e.servers)
		require.NoError(t, e.channel.Update(eps[0], lcresolver.SetWeight(eps[1], 3)))
		second := e.hold(6, map[string]int{"pod1": 2, "pod2": 2, "pod3": 2})
		e.counts(3, 9)
		e.endAll(first, second)
		e.counts(0, 0)
	})
}

// A node that is listed itself and behind a gateway is two endpoints: nobody
// can tell that some of the gateway's streams are the node's.
func TestGatewayHidesItsNodes(t *testing.T) {
	each(t, proxies, func(t *testing.T, k kind) {
		n := startNodes(t, "node")[0]
		e := dialReady(t, n, startProxy(t, k, settings{}, n))
		streams := e.hold(6, map[string]int{"node": 6})
		e.inFlight(3, 3)
		require.NoError(t, n.WaitLive(t.Context(), 6))
		e.endAll(streams)
		e.counts(0, 0)
	})
}

// Endpoints with ids of their own are told apart although all have a gateway's
// address: each is counted, over a connection of its own.
func TestGatewayWithIDs(t *testing.T) {
	each(t, proxies, func(t *testing.T, k kind) {
		p := startProxy(t, k, settings{}, startNodes(t, "pod")[0])
		e := dialReady(t, p)
		var eps []resolver.Endpoint
		for _, id := range []string{"x", "y", "z"} {
			eps = append(eps, lcresolver.SetID(endpointsOf(e.servers)[0], id))
		}
		require.NoError(t, e.channel.Update(eps...))
		wait(t, "all endpoints are ready", func() bool {
			ready := 0
			for _, n := range e.snapshot().Endpoints {
				if len(n.Members) == 1 && n.Members[0].Ready {
					ready++
				}
			}
			return ready == 3
		})
		e.connected(p, 3)

		streams := e.hold(6, map[string]int{"pod": 6})
		for _, n := range e.snapshot().Endpoints {
			require.Equal(t, []string{p.addr}, n.Addresses)
			require.EqualValues(t, 2, n.InFlight, n.ID)
		}
		e.endAll(streams)
		require.Zero(t, e.snapshot().InFlight)
	})
}

// A reload may take a proxy to other nodes. Its endpoint stays the same, with
// the streams that are still on the old ones.
func TestGatewayMovesToAnotherNode(t *testing.T) {
	each(t, proxies, func(t *testing.T, k kind) {
		ns := startNodes(t, "near", "old", "new")
		p := startProxy(t, k, settings{}, ns[1])
		e := dialReady(t, ns[0], p)
		first := e.hold(4, map[string]int{"near": 2, "old": 2})
		p.nodes = all(ns[2])
		p.reload()
		e.waitServing(p)
		second := e.hold(4, map[string]int{"near": 2, "new": 2})
		e.inFlight(4, 4)
		e.endAll(first, second)
		e.counts(0, 0)
	})
}

// A proxy that takes two streams for each connection, where the policy ignores that: those that wait for their
// turn are counted where they wait, which steers others away, and each gives its
// count back once, whether it got its turn or not.
func TestProxyLimitsConcurrentStreams(t *testing.T) {
	each(t, proxies, func(t *testing.T, k kind) {
		ns := startNodes(t, "near", "far", "new")
		p := startProxy(t, k, k.proxy.limit(2), ns[1])
		e := dial(t, leastconntest.ChannelConfig{ServiceConfig: ignoringLimits}, ns[0], p)
		e.waitReady(ns[0], p)
		far, near := on("far", e.hold(4, map[string]int{"near": 2, "far": 2}))

		waiting, giveUp := context.WithCancel(e.ctx)
		defer giveUp()
		opened := make(chan []*leastconntest.Stream, 1)
		go func() {
			streams, _ := e.channel.OpenTogether(waiting, 6)
			opened <- streams
		}()
		wait(t, "six more streams are counted", func() bool { return e.snapshot().InFlight == 10 })
		e.inFlight(5, 5)
		wait(t, "those on the node are open", func() bool { return ns[0].HeldStreams() == 5 })
		require.Equal(t, 2, ns[1].Started(), "streams through the proxy")

		e.list(ns[0], p, ns[2])
		more := e.hold(5, map[string]int{"new": 5})
		require.NoError(t, far[0].End())
		wait(t, "the next stream has its turn", func() bool { return ns[1].Started() == 3 })
		e.inFlight(5, 4, 5)
		require.Equal(t, 2, ns[1].HeldStreams())

		giveUp()
		leastconntest.CancelAll(<-opened)
		e.counts(2, 1, 5)
		e.endAll(near, far[1:], more)
		e.counts(0, 0, 0)
	})
}

// A proxy closes idle connections. The channel makes new ones at once, and
// nothing is counted meanwhile.
func TestProxyClosesIdleConnections(t *testing.T) {
	each(t, proxies, func(t *testing.T, k kind) {
		p := k.start(t, k.proxy.idle)
		e := dialReady(t, p)
		for range 3 {
			e.counts(0)
			before, _ := e.conns.of(p)
			wait(t, "another connection", func() bool { begun, _ := e.conns.of(p); return begun > before })
			streams := []*leastconntest.Stream{e.openAgain()}
			streams = append(streams, e.hold(2, map[string]int{k.name: 2})...)
			e.counts(3)
			e.endAll(streams)
		}
		e.counts(0)
	})
}

// openAgain opens a stream, again if it meets the end of an idle connection: its count is given back, too.
func (e *env) openAgain() (s *leastconntest.Stream) {
	e.Helper()
	wait(e.T, "a stream", func() bool {
		var err error
		if s, err = leastconntest.Open(e.ctx, e.conn); err == nil {
			return true
		}
		require.Equal(e, codes.Unavailable, status.Code(err), "%v", err)
		e.inFlight(0)
		return false
	})
	return s
}

const retrying = `{"loadBalancingConfig":[{"least_conn":{"failurePenalty":"0s"}}],"methodConfig":[{"name":[{}],"retryPolicy":
	{"maxAttempts":2,"initialBackoff":"0.001s","maxBackoff":"0.001s","backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`

// A proxy without a node that serves answers with an HTTP status of its own,
// which gRPC makes UNAVAILABLE. The proxy's endpoint is connected all the while
// and gets its turn; no count stays. A retry goes elsewhere.
func TestProxyWithoutNode(t *testing.T) {
	for _, outage := range []struct {
		name        string
		kind        kind
		begin, end  func(system)
		streamsLive bool
	}{
		{name: "nginx/stopped", kind: nginx, begin: stopNode, end: restartNode},
		{name: "haproxy/stopped", kind: haproxy, begin: stopNode, end: restartNode},
		{name: "haproxy/disabled", kind: haproxy, begin: ordered("disable server nodes/node0"), end: ordered("enable server nodes/node0"), streamsLive: true},
	} {
		t.Run(outage.name, func(t *testing.T) {
			t.Parallel()
			p := outage.kind.start(t, settings{})
			e := dialReady(t, startNodes(t, "near")[0], p)
			held := 0
			var streams []*leastconntest.Stream
			if outage.streamsLive {
				held, streams = 2, e.hold(4, map[string]int{"near": 2, p.Name(): 2})
			}
			outage.begin(p)
			failed := 0
			for range 10 {
				if _, err := e.unary(); err != nil {
					failed++
					require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
					require.Regexp(t, "unexpected HTTP status code received from server: 50[23]", err.Error())
				}
				e.inFlight(held, held)
			}
			require.Equal(t, 5, failed, "of 10 RPCs that take turns")

			require.NoError(t, e.channel.UpdateConfig(retrying, endpointsOf(e.servers)...))
			for range 10 {
				by, err := e.unary()
				require.NoError(t, err)
				require.Equal(t, "near", by)
				e.inFlight(held, held)
			}
			streams = append(streams, e.hold(4, map[string]int{"near": 4})...)
			e.counts(held+4, held)

			outage.end(p)
			streams = append(streams, e.hold(4, map[string]int{p.Name(): 4})...)
			e.counts(held+4, held+4)
			e.endAll(streams)
			e.counts(0, 0)
		})
	}
}

package leastconnbalancer_test

import (
	"net/url"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

var benchTarget = resolver.Target{URL: url.URL{Scheme: "bench", Path: "/service"}}

// benchChannel is a balancer with the ClientConn that drives it.
type benchChannel struct {
	conn     *benchClientConn
	balancer balancer.Balancer
	config   serviceconfig.LoadBalancingConfig
}

func buildBenchChannel(tb testing.TB, p benchPolicy) *benchChannel {
	tb.Helper()
	builder, config := p.builder(tb)
	conn := newBenchClientConn()
	opts := balancer.BuildOptions{Target: benchTarget, Authority: "service"}
	return &benchChannel{conn: conn, balancer: builder.Build(conn, opts), config: config}
}

// readyBenchChannel is a channel for a benchmark that does not measure its bring-up.
func readyBenchChannel(tb testing.TB, p benchPolicy, endpoints []resolver.Endpoint) *benchChannel {
	tb.Helper()
	ch := buildBenchChannel(tb, p)
	ch.conn.eager = p.peer
	ch.update(tb, endpoints)
	ch.conn.eager = false
	return ch
}

// update gives the balancer a new list of endpoints, all different, and drives it until all of them are READY.
func (ch *benchChannel) update(tb testing.TB, endpoints []resolver.Endpoint) {
	tb.Helper()
	err := ch.balancer.UpdateClientConnState(balancer.ClientConnState{
		ResolverState:  resolver.State{Endpoints: endpoints},
		BalancerConfig: ch.config,
	})
	if err != nil {
		tb.Fatalf("UpdateClientConnState: %v", err)
	}
	ch.conn.awaitReady(tb, len(endpoints))
}

// pick makes one pick and returns the address that it went to, and its Done, which may be nil.
func (ch *benchChannel) pick(tb testing.TB) (string, func(balancer.DoneInfo)) {
	tb.Helper()
	res, err := ch.conn.picker().Pick(balancer.PickInfo{FullMethodName: benchMethod, Ctx: tb.Context()})
	if err != nil {
		tb.Fatalf("Pick: %v", err)
	}
	sc, ok := res.SubConn.(*benchSubConn)
	if !ok {
		tb.Fatalf("Pick returned a SubConn of type %T, not the one that NewSubConn gave", res.SubConn)
	}
	return sc.addr, res.Done
}

// benchRelease calls a Done, which a policy that counts nothing leaves nil.
func benchRelease(done func(balancer.DoneInfo)) {
	if done != nil {
		done(balancer.DoneInfo{BytesSent: true, BytesReceived: true})
	}
}

func (ch *benchChannel) close() {
	ch.balancer.Close()
	ch.conn.silence()
}

package leastconnbalancer_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/leastrequest" // registers least_request_experimental
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// newBenchConn is a channel on which every connection succeeds at once.
func newBenchConn(tb testing.TB, p benchPolicy) *fakeConn {
	tb.Helper()
	builder, config := p.builder(tb)
	c := newFakeConn(tb)
	c.succeeds, c.config = true, config
	c.build(builder)
	return c
}

// readyBenchConn is one for a benchmark that does not measure its bring-up.
func readyBenchConn(tb testing.TB, p benchPolicy, endpoints []resolver.Endpoint) *fakeConn {
	tb.Helper()
	c := newBenchConn(tb, p)
	c.eager = p.peer
	c.bringUp(endpoints)
	c.eager = false
	return c
}

// bringUp gives the balancer a new list of endpoints, all different, and drives
// it until all of them are READY.
func (c *fakeConn) bringUp(endpoints []resolver.Endpoint) {
	c.tb.Helper()
	if err := c.update(endpoints); err != nil {
		c.tb.Fatalf("UpdateClientConnState: %v", err)
	}
	c.awaitReady(len(endpoints))
}

// benchRelease calls a Done, which a policy that counts nothing leaves nil.
func benchRelease(done func(balancer.DoneInfo)) {
	if done != nil {
		done(balancer.DoneInfo{BytesSent: true, BytesReceived: true})
	}
}

// benchPolicy is a registered balancer and the config to run it with.
type benchPolicy struct {
	label  string // its name in the benchmarks
	name   string // its name in gRPC's registry
	config string
	peer   bool // built upon endpointsharding, whose bring-up is quadratic
}

var (
	benchLeastConn      = benchPolicy{label: "least_conn", name: "least_conn", config: `{"resourceKey":"bench"}`}
	benchRoundRobin     = benchPolicy{label: "round_robin", name: "round_robin", peer: true}
	benchLeastRequest2  = benchPolicy{label: "least_request_2", name: "least_request_experimental", config: `{"choiceCount":2}`, peer: true}
	benchLeastRequest10 = benchPolicy{label: "least_request_10", name: "least_request_experimental", config: `{"choiceCount":10}`, peer: true}
)

// builder returns the registered builder and the parsed config, which is nil for a policy without one.
func (p benchPolicy) builder(tb testing.TB) (balancer.Builder, serviceconfig.LoadBalancingConfig) {
	tb.Helper()
	builder := balancer.Get(p.name)
	if builder == nil {
		tb.Fatalf("%s is not registered", p.name)
	}
	if p.config == "" {
		return builder, nil
	}
	parser, ok := builder.(balancer.ConfigParser)
	if !ok {
		tb.Fatalf("%s has no ParseConfig", p.name)
	}
	config, err := parser.ParseConfig(json.RawMessage(p.config))
	if err != nil {
		tb.Fatalf("%s: %v", p.name, err)
	}
	return builder, config
}

// Kinds of weights.
const (
	benchEqualWeights    = "equal"    // no endpoint has the attribute
	benchFourWeights     = "four"     // 1, 2, 3, 5 in turn
	benchDistinctWeights = "distinct" // each of 1 to n once, in no order
)

// benchEndpoints returns n endpoints of one address each. Every call makes them anew, as a resolver does.
func benchEndpoints(n int, weights string) []resolver.Endpoint {
	es := make([]resolver.Endpoint, n)
	for i := range es {
		addr := fmt.Sprintf("10.%d.%d.%d:8443", i>>16&255, i>>8&255, i&255)
		es[i] = resolver.Endpoint{Addresses: []resolver.Address{{Addr: addr}}}
		switch weights {
		case benchFourWeights:
			es[i] = weight.Set(es[i], weight.EndpointInfo{Weight: []uint32{1, 2, 3, 5}[i%4]})
		case benchDistinctWeights:
			// 7919 is prime, so its multiples modulo n differ for every n that it does not divide.
			es[i] = weight.Set(es[i], weight.EndpointInfo{Weight: uint32(1 + i*7919%n)})
		}
	}
	return es
}

// The benchmarks are worth nothing unless their fake channel brings a balancer to READY as gRPC does.
func TestBenchChannelReachesEveryEndpoint(t *testing.T) {
	const n = 5
	five, six := benchEndpoints(n, benchEqualWeights), benchEndpoints(n+1, benchEqualWeights)
	for _, p := range []benchPolicy{benchRoundRobin, benchLeastConn} {
		for _, peer := range []bool{false, p.peer} {
			p.peer = peer
			ch := readyBenchConn(t, p, five)
			wantBenchPicksEachOnce(t, ch, p, n)
			ch.bringUp(six)
			wantBenchPicksEachOnce(t, ch, p, n+1)
			ch.bringUp(five)
			wantBenchPicksEachOnce(t, ch, p, n)
			ch.close()
		}
	}
}

// wantBenchPicksEachOnce picks n times and checks that each of the first n endpoints got one pick.
func wantBenchPicksEachOnce(t *testing.T, ch *fakeConn, p benchPolicy, n int) {
	t.Helper()
	var got, want []string
	var held []func(balancer.DoneInfo)
	for _, e := range benchEndpoints(n, benchEqualWeights) {
		addr, done := ch.pick()
		got, held = append(got, addr), append(held, done)
		want = append(want, e.Addresses[0].Addr)
	}
	for _, done := range held {
		benchRelease(done)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d picks went to %v, want each of %v once", p.label, n, got, want)
	}
}

// BenchmarkBringUp measures a channel from Build to READY on all of n endpoints. At n=10000 round_robin needs a quarter of a
// minute and least_request more than one: leave them out with -skip 'BringUp/policy=least_request_2/n=10000'.
func BenchmarkBringUp(b *testing.B) {
	for _, p := range []benchPolicy{benchLeastConn, benchRoundRobin, benchLeastRequest2} {
		for _, n := range []int{10, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("policy=%s/n=%d", p.label, n), func(b *testing.B) {
				endpoints := benchEndpoints(n, benchEqualWeights)
				b.ReportAllocs()
				for b.Loop() {
					ch := newBenchConn(b, p)
					ch.bringUp(endpoints)
					b.StopTimer()
					_, done := ch.pick()
					benchRelease(done)
					ch.close()
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkUpdate measures a resolver update to a balancer that is READY on n endpoints: the same list made anew, or the
// list with one more endpoint, until that one is READY too.
func BenchmarkUpdate(b *testing.B) {
	for _, kind := range []string{"unchanged", "one_more"} {
		for _, p := range []benchPolicy{benchLeastConn, benchRoundRobin, benchLeastRequest2} {
			for _, n := range []int{10, 100, 1000, 10000} {
				b.Run(fmt.Sprintf("kind=%s/policy=%s/n=%d", kind, p.label, n), func(b *testing.B) {
					ch := readyBenchConn(b, p, benchEndpoints(n, benchEqualWeights))
					defer ch.close()
					if kind == "unchanged" {
						benchmarkUnchanged(b, ch, n)
					} else {
						benchmarkOneMore(b, ch, n)
					}
					_, done := ch.pick()
					benchRelease(done)
				})
			}
		}
	}
}

func benchmarkUnchanged(b *testing.B, ch *fakeConn, n int) {
	// Two lists in turn, so that none is the very slice of the update before.
	lists := [2][]resolver.Endpoint{benchEndpoints(n, benchEqualWeights), benchEndpoints(n, benchEqualWeights)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ch.bringUp(lists[i%2])
	}
}

func benchmarkOneMore(b *testing.B, ch *fakeConn, n int) {
	fewer, more := benchEndpoints(n, benchEqualWeights), benchEndpoints(n+1, benchEqualWeights)
	b.ReportAllocs()
	for b.Loop() {
		ch.bringUp(more)
		b.StopTimer()
		ch.bringUp(fewer)
		b.StartTimer()
	}
}

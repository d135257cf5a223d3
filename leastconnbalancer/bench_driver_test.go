package leastconnbalancer_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc/balancer"
)

// The benchmarks are worth nothing unless their fake channel brings a balancer to READY as gRPC does.
func TestBenchChannelReachesEveryEndpoint(t *testing.T) {
	const n = 5
	five, six := benchEndpoints(n, benchEqualWeights), benchEndpoints(n+1, benchEqualWeights)
	for _, p := range []benchPolicy{benchRoundRobin, benchLeastConn} {
		for _, peer := range []bool{false, p.peer} {
			p.peer = peer
			ch := readyBenchChannel(t, p, five)
			wantBenchPicksEachOnce(t, ch, p, n)
			ch.update(t, six)
			wantBenchPicksEachOnce(t, ch, p, n+1)
			ch.update(t, five)
			wantBenchPicksEachOnce(t, ch, p, n)
			ch.close()
		}
	}
}

// wantBenchPicksEachOnce picks n times and checks that each of the first n endpoints got one pick.
func wantBenchPicksEachOnce(t *testing.T, ch *benchChannel, p benchPolicy, n int) {
	t.Helper()
	var got, want []string
	var held []func(balancer.DoneInfo)
	for _, e := range benchEndpoints(n, benchEqualWeights) {
		addr, done := ch.pick(t)
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

package leastconnbalancer_test

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/resolver"
)

// BenchmarkUpdate measures a resolver update to a balancer that is READY on n endpoints: the same list made anew, or the
// list with one more endpoint, until that one is READY too.
func BenchmarkUpdate(b *testing.B) {
	for _, kind := range []string{"unchanged", "one_more"} {
		for _, p := range []benchPolicy{benchLeastConn, benchRoundRobin, benchLeastRequest2} {
			for _, n := range []int{10, 100, 1000, 10000} {
				b.Run(fmt.Sprintf("kind=%s/policy=%s/n=%d", kind, p.label, n), func(b *testing.B) {
					ch := readyBenchChannel(b, p, benchEndpoints(n, benchEqualWeights))
					defer ch.close()
					if kind == "unchanged" {
						benchmarkUnchanged(b, ch, n)
					} else {
						benchmarkOneMore(b, ch, n)
					}
					_, done := ch.pick(b)
					benchRelease(done)
				})
			}
		}
	}
}

func benchmarkUnchanged(b *testing.B, ch *benchChannel, n int) {
	// Two lists in turn, so that none is the very slice of the update before.
	lists := [2][]resolver.Endpoint{benchEndpoints(n, benchEqualWeights), benchEndpoints(n, benchEqualWeights)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ch.update(b, lists[i%2])
	}
}

func benchmarkOneMore(b *testing.B, ch *benchChannel, n int) {
	fewer, more := benchEndpoints(n, benchEqualWeights), benchEndpoints(n+1, benchEqualWeights)
	b.ReportAllocs()
	for b.Loop() {
		ch.update(b, more)
		b.StopTimer()
		ch.update(b, fewer)
		b.StartTimer()
	}
}

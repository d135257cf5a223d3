package leastconnbalancer_test

import (
	"fmt"
	"testing"
)

// BenchmarkBringUp measures a channel from Build to READY on all of n endpoints. At n=10000 round_robin needs a quarter of a
// minute and least_request more than one: leave them out with -skip 'BringUp/policy=least_request_2/n=10000'.
func BenchmarkBringUp(b *testing.B) {
	for _, p := range []benchPolicy{benchLeastConn, benchRoundRobin, benchLeastRequest2} {
		for _, n := range []int{10, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("policy=%s/n=%d", p.label, n), func(b *testing.B) {
				endpoints := benchEndpoints(n, benchEqualWeights)
				b.ReportAllocs()
				for b.Loop() {
					ch := buildBenchChannel(b, p)
					ch.update(b, endpoints)
					b.StopTimer()
					_, done := ch.pick(b)
					benchRelease(done)
					ch.close()
					b.StartTimer()
				}
			})
		}
	}
}

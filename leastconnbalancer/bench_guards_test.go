package leastconnbalancer_test

import (
	"fmt"
	"testing"
)

// benchGuards are configs of the policy from no guard to all of them, with caps that nobody reaches and nobody who starts
// slowly.
var benchGuards = []benchPolicy{
	{label: "none", name: "least_conn", config: `{"resourceKey":"bench-none","failurePenalty":"0s"}`},
	{label: "default", name: "least_conn", config: `{"resourceKey":"bench-default"}`},
	{label: "all", name: "least_conn", config: `{"resourceKey":"bench-all","failurePenalty":"1s","maxInFlight":1000000,` +
		`"onFull":"queue","maxQueued":10000,"slowStart":{"window":"30s","minWeightPercent":10,"aggression":1}}`},
}

// BenchmarkGuards measures one Pick and one Done, as BenchmarkPick does, under each of benchGuards.
func BenchmarkGuards(b *testing.B) {
	for _, n := range []int{10, 1000} {
		for _, p := range benchGuards {
			b.Run(fmt.Sprintf("guards=%s/n=%d", p.label, n), func(b *testing.B) {
				c := benchCase{policy: p, weights: benchEqualWeights, n: n, inFlight: benchHalf, procs: 1, views: 1, gogc: 100}
				ch := readyBenchChannel(b, p, benchEndpoints(n, benchEqualWeights))
				defer ch.close()
				benchmarkPick(b, c, ch)
			})
		}
	}
}

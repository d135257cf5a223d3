package leastconnbalancer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// BenchmarkCost measures one Pick and one Done where each endpoint has about two RPCs in flight that cost nothing beside
// others, one unit, or anything up to a million. Making the contexts is no part of it. After the first RPC with a cost
// all picks of a process look for one, so those without any come first.
func BenchmarkCost(b *testing.B) {
	var rig benchRig
	defer rig.close()
	for _, most := range []int{0, 1, leastconnbalancer.MaxCost} {
		for _, n := range []int{10, 1000, 10000} {
			b.Run(fmt.Sprintf("most=%d/n=%d", most, n), func(b *testing.B) {
				rig.prepare(b, benchCase{policy: benchLeastConn, weights: benchEqualWeights, n: n, views: 1})
				benchmarkCost(b, rig.channels[0], 2*n, most)
			})
		}
	}
}

func benchmarkCost(b *testing.B, ch *fakeConn, inFlight, most int) {
	picker, random := ch.picker(), rand.New(rand.NewPCG(1, 2))
	infos := make([]balancer.PickInfo, 1000)
	prepare := func() {
		for i := range infos {
			infos[i].Ctx = context.Background()
			if most > 0 {
				infos[i].Ctx = leastconnbalancer.WithCost(infos[i].Ctx, 1+random.IntN(most))
			}
		}
	}
	pick := func(i int) func(balancer.DoneInfo) {
		res, err := picker.Pick(infos[i%len(infos)])
		if err != nil {
			b.Fatal(err)
		}
		return res.Done
	}
	held := make([]func(balancer.DoneInfo), inFlight)
	for i := range held {
		if i%len(infos) == 0 {
			prepare()
		}
		held[i] = pick(i)
	}
	random.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%len(infos) == 0 {
			b.StopTimer()
			prepare()
			b.StartTimer()
		}
		oldest := &held[i%len(held)]
		benchRelease(*oldest)
		*oldest = pick(i)
	}
	for _, done := range held {
		benchRelease(done)
	}
}

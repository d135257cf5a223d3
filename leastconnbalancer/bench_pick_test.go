package leastconnbalancer_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/balancer"
)

const benchMethod = "/bench.Service/Call"

// BenchmarkPick measures one Pick and one Done. The RPCs in flight are held by picks made before the timer starts; each
// op starts one RPC and ends the oldest of the others, so that their number stays.
//
// procs sets GOMAXPROCS while the case runs and restores it afterwards; RunParallel then starts that many goroutines, each
// with its share of the RPCs in flight. gogc sets the GC percentage in the same way: 1000 stands for a client whose
// heap is not as small as this one's.
func BenchmarkPick(b *testing.B) {
	var rig benchRig
	defer rig.close()
	for _, c := range benchCases() {
		b.Run(c.String(), func(b *testing.B) {
			rig.prepare(b, c)
			benchmarkPick(b, c, rig.channels[0])
		})
	}
}

func benchmarkPick(b *testing.B, c benchCase, ch *benchChannel) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
	defer debug.SetGCPercent(debug.SetGCPercent(c.gogc))
	held := holdBenchPicks(b, ch, c.held())
	picker := ch.conn.picker()
	info := balancer.PickInfo{FullMethodName: benchMethod, Ctx: b.Context()}
	var workers atomic.Int64

	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		i := int(workers.Add(1)) - 1
		share := held[i*len(held)/c.procs : (i+1)*len(held)/c.procs]
		if err := benchPicks(pb, picker, info, share); err != nil {
			b.Errorf("Pick: %v", err)
		}
	})
	b.StopTimer()
	for _, done := range held {
		benchRelease(done)
	}
}

// benchPicks puts each new pick in the place of the oldest of held and ends that one; with none held it ends the new one
// at once.
func benchPicks(pb *testing.PB, picker balancer.Picker, info balancer.PickInfo, held []func(balancer.DoneInfo)) error {
	oldest := 0
	for pb.Next() {
		res, err := picker.Pick(info)
		if err != nil {
			return err
		}
		if _, ok := res.SubConn.(*benchSubConn); !ok {
			return errors.New("the SubConn is not one that NewSubConn gave")
		}
		done := res.Done
		if len(held) > 0 {
			done, held[oldest] = held[oldest], done
			if oldest++; oldest == len(held) {
				oldest = 0
			}
		}
		benchRelease(done)
	}
	return nil
}

// holdBenchPicks makes n picks and returns their Dones, shuffled: in the order of the picks, a policy that rotates would see
// each RPC end on the node that it has just picked. The order lasts: such a policy picks the nodes in the order in which
// their RPCs end.
func holdBenchPicks(b *testing.B, ch *benchChannel, n int) []func(balancer.DoneInfo) {
	held := make([]func(balancer.DoneInfo), n)
	for i := range held {
		_, held[i] = ch.pick(b)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { held[i], held[j] = held[j], held[i] })
	return held
}

// benchRig is the channels of the case that runs: one for each view, with the same endpoints. Cases that need the same
// ones follow each other and share them, as do the rounds of one case.
type benchRig struct {
	of       benchCase
	channels []*benchChannel
}

func (r *benchRig) prepare(b *testing.B, c benchCase) {
	c = benchCase{policy: c.policy, weights: c.weights, n: c.n, views: c.views}
	if r.of == c {
		return
	}
	r.close()
	for range c.views {
		r.channels = append(r.channels, readyBenchChannel(b, c.policy, benchEndpoints(c.n, c.weights)))
	}
	r.of = c
}

func (r *benchRig) close() {
	for _, ch := range r.channels {
		ch.close()
	}
	*r = benchRig{}
}

package leastconnbalancer_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Levels of RPCs in flight.
const (
	benchIdle   = "0"
	benchHalf   = "n2" // n/2
	benchDouble = "2n"
)

// benchCase is one sub-benchmark of BenchmarkPick.
type benchCase struct {
	policy   benchPolicy
	weights  string
	n        int // endpoints
	inFlight string
	procs    int
	views    int // balancers on the same resource key; one of them is picked from
	gogc     int
}

func (c benchCase) String() string {
	return fmt.Sprintf("policy=%s/weights=%s/n=%d/inflight=%s/procs=%d/views=%d/gogc=%d",
		c.policy.label, c.weights, c.n, c.inFlight, c.procs, c.views, c.gogc)
}

// held is the number of RPCs in flight.
func (c benchCase) held() int {
	switch c.inFlight {
	case benchHalf:
		return c.n / 2
	case benchDouble:
		return 2 * c.n
	}
	return 0
}

// benchCases returns the wanted cases, those with the same channels together.
func benchCases() []benchCase {
	var cases []benchCase
	add := func(c benchCase) {
		for _, c.inFlight = range []string{benchIdle, benchHalf, benchDouble} {
			for _, c.procs = range []int{1, 2} {
				for _, c.gogc = range []int{100, 1000} {
					if c.wanted() {
						cases = append(cases, c)
					}
				}
			}
		}
	}
	for _, policy := range []benchPolicy{benchLeastConn, benchRoundRobin, benchLeastRequest2, benchLeastRequest10} {
		for _, weights := range []string{benchEqualWeights, benchFourWeights, benchDistinctWeights} {
			for _, n := range []int{1, 3, 10, 100, 1000, 10000} {
				for _, views := range []int{1, 4, 50} {
					add(benchCase{policy: policy, weights: weights, n: n, views: views})
				}
			}
		}
	}
	return cases
}

// wanted keeps what the table of internal/benchtable compares: each policy at each n half full on one proc, and from
// there one step in one direction at a time.
func (c benchCase) wanted() bool {
	common := c.inFlight == benchHalf && c.procs == 1 && c.gogc == 100
	switch {
	case c.views != 1:
		fits := c.n == 100 || c.n == 1000 && c.views == 4
		return c.policy == benchLeastConn && c.weights == benchEqualWeights && fits && common
	case c.weights != benchEqualWeights:
		return c.policy == benchLeastConn && c.n >= 1000 && c.inFlight != benchIdle && c.procs == 1 && c.gogc == 100
	case c.policy == benchLeastRequest10:
		return common
	case c.inFlight == benchHalf && c.procs == 1:
		return true
	default:
		size := c.n == 10 || c.n == 1000 || c.n == 10000
		return size && c.gogc == 100 && (c.inFlight == benchHalf || c.procs == 1)
	}
}

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

func benchmarkPick(b *testing.B, c benchCase, ch *fakeConn) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
	defer debug.SetGCPercent(debug.SetGCPercent(c.gogc))
	held := holdBenchPicks(b, ch, c.held())
	picker := ch.picker()
	info := balancer.PickInfo{FullMethodName: "/fake.Service/Call", Ctx: b.Context()}
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
		if _, ok := res.SubConn.(*fakeSubConn); !ok {
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
func holdBenchPicks(b *testing.B, ch *fakeConn, n int) []func(balancer.DoneInfo) {
	held := make([]func(balancer.DoneInfo), n)
	for i := range held {
		_, held[i] = ch.pick()
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { held[i], held[j] = held[j], held[i] })
	return held
}

// benchRig is the channels of the case that runs: one for each view, with the same endpoints. Cases that need the same
// ones follow each other and share them, as do the rounds of one case.
type benchRig struct {
	of       benchCase
	channels []*fakeConn
}

func (r *benchRig) prepare(b *testing.B, c benchCase) {
	c = benchCase{policy: c.policy, weights: c.weights, n: c.n, views: c.views}
	if r.of == c {
		return
	}
	r.close()
	for range c.views {
		r.channels = append(r.channels, readyBenchConn(b, c.policy, benchEndpoints(c.n, c.weights)))
	}
	r.of = c
}

func (r *benchRig) close() {
	for _, ch := range r.channels {
		ch.close()
	}
	*r = benchRig{}
}

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
				ch := readyBenchConn(b, p, benchEndpoints(n, benchEqualWeights))
				defer ch.close()
				benchmarkPick(b, c, ch)
			})
		}
	}
}

// BenchmarkMetrics measures one Pick and one Done without a stats handler, and with one that collects once a second.
func BenchmarkMetrics(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("n=%d/metrics=%v", n, on), func(b *testing.B) { benchmarkMetrics(b, n, on) })
		}
	}
}

func benchmarkMetrics(b *testing.B, n int, on bool) {
	ch := newFakeConn(b)
	builder, config := benchLeastConn.builder(b)
	ch.succeeds, ch.config = true, config
	if on {
		recorder := leastconntest.NewRecorder()
		ch.recorder = recorder
		defer collecting(recorder)()
	}
	ch.build(builder)
	defer ch.close()
	ch.bringUp(benchEndpoints(n, benchEqualWeights))
	held := holdBenchPicks(b, ch, n/2)
	picker := ch.picker()
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		if err := benchPicks(pb, picker, balancer.PickInfo{FullMethodName: "/fake.Service/Call", Ctx: b.Context()}, nil); err != nil {
			b.Errorf("Pick: %v", err)
		}
	})
	b.StopTimer()
	for _, done := range held {
		benchRelease(done)
	}
}

// collecting collects once a second.
func collecting(r *leastconntest.Recorder) (stop func()) {
	var done sync.WaitGroup
	end := make(chan struct{})
	done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.Collect()
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		done.Wait()
	}
}

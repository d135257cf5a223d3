package leastconnbalancer_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	estats "google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// BenchmarkMetrics measures one Pick and one Done without a stats handler, and with one that collects once a second.
func BenchmarkMetrics(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("n=%d/metrics=%v", n, on), func(b *testing.B) { benchmarkMetrics(b, n, on) })
		}
	}
}

func benchmarkMetrics(b *testing.B, n int, on bool) {
	ch := buildBenchChannel(b, benchLeastConn)
	defer ch.close()
	if on {
		recorder := leastconntest.NewRecorder()
		ch.balancer.Close()
		ch.balancer = balancer.Get(benchLeastConn.name).Build(recordingBenchConn{ch.conn, recorder}, balancer.BuildOptions{Target: benchTarget})
		defer collecting(recorder)()
	}
	ch.update(b, benchEndpoints(n, benchEqualWeights))
	held := holdBenchPicks(b, ch, n/2)
	picker := ch.conn.picker()
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		if err := benchPicks(pb, picker, balancer.PickInfo{FullMethodName: benchMethod, Ctx: b.Context()}, nil); err != nil {
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

// recordingBenchConn is a channel with a stats handler.
type recordingBenchConn struct {
	*benchClientConn
	recorder estats.MetricsRecorder
}

func (c recordingBenchConn) MetricsRecorder() estats.MetricsRecorder { return c.recorder }

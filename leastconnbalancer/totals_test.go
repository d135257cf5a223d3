package leastconnbalancer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// Equal concurrency is not equal totals: a server that takes three times as
// long finishes a third of the calls.
func TestD93TotalsFollowSpeed(t *testing.T) {
	l := newLab(t)
	ns := []*leastconntest.Node{
		l.node(leastconntest.Options{Name: "a", Delay: 100 * time.Millisecond}),
		l.node(leastconntest.Options{Name: "b", Delay: 300 * time.Millisecond}),
	}
	c := l.dial(ns...)
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	var workers sync.WaitGroup
	for range 20 {
		workers.Go(func() {
			for ctx.Err() == nil {
				_, _ = c.Unary(ctx)
			}
		})
	}
	var sums, samples [2]int
	stop := c.watch(func(s state.Snapshot) error {
		for i, n := range ns {
			for _, node := range s.Endpoints {
				if node.Addresses[0] == n.Addr() {
					sums[i] += int(node.InFlight)
					samples[i]++
				}
			}
		}
		return nil
	})
	before := started(ns)
	l.wait("70 calls at b", func() bool { return started(ns, before...)[1] >= 70 })
	stop()
	totals := started(ns, before...)
	for i, n := range ns {
		totals[i] -= n.Live() // those that have not finished
	}
	cancel()
	workers.Wait()
	mean := func(i int) float64 { return float64(sums[i]) / float64(samples[i]) }
	t.Logf("in flight, on average: a %.1f, b %.1f", mean(0), mean(1))
	t.Logf("calls: a %d, b %d", totals[0], totals[1])
	require.InDelta(t, mean(0), mean(1), 1)
	require.InDelta(t, 3, float64(totals[0])/float64(totals[1]), 0.6)
	c.counts(ns, 0, 0)
}

package leastconnbalancer_test

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// mixed starts a node for each name of whose RPCs one in ten takes 500 ms and the
// others 5 ms.
func (l *lab) mixed(names ...string) (nodes []*leastconntest.Node) {
	l.Helper()
	for _, name := range names {
		var rpcs atomic.Int64
		takes := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			delay := 5 * time.Millisecond
			if rpcs.Add(1)%10 == 0 {
				delay = 500 * time.Millisecond
			}
			time.Sleep(delay)
			return handler(ctx, req)
		}
		nodes = append(nodes, l.node(leastconntest.Options{Name: name, ServerOptions: []grpc.ServerOption{grpc.ChainUnaryInterceptor(takes)}}))
	}
	return nodes
}

// percentile is the time within which so many in a hundred of the calls ended.
func (w work) percentile(p float64) time.Duration {
	took := make([]time.Duration, len(w))
	for i, c := range w {
		took[i] = c.took
	}
	slices.Sort(took)
	return took[int(math.Ceil(p/100*float64(len(took))))-1]
}

// Where RPCs differ in cost, all nodes are as busy, and RPCs take no longer than
// with round_robin. What else the machine does may touch one more than the
// other, so the round may be repeated.
func TestD56MixedCosts(t *testing.T) {
	l := newLab(t)
	ns, other := l.mixed("a", "b"), l.mixed("c", "d")
	c := l.dial(ns...)
	robin := l.unused(leastconntest.ChannelConfig{
		ServiceConfig: `{"loadBalancingConfig":[{"round_robin":{}}]}`, Endpoints: leastconntest.Endpoints(other...),
	})
	require.NoError(t, robin.WaitServed(l.ctx, other...))
	busy, spread := c.crew(40, 0, c.unaryOnce), robin.crew(40, 0, robin.unaryOnce)
	begun := l.passes(time.Now(), 500*time.Millisecond) // as many slow ones as there will be
	apart, slower := 1.0, 2.0
	for round := 0; (apart > 0.05 || slower > 1.1) && round < 3; round++ {
		a, b := c.concurrency(2*time.Second, ns[0], ns[1])
		end := time.Now()
		mine, theirs := busy.between(begun, end), spread.between(begun, end)
		apart = math.Abs(a-b) / max(a, b)
		slower = float64(mine.percentile(99)) / float64(theirs.percentile(99))
		t.Logf("mean concurrency %.2f and %.2f; p99 %v of %d calls, round_robin %v of %d",
			a, b, mine.percentile(99), len(mine), theirs.percentile(99), len(theirs))
		require.Zero(t, mine.failed())
		begun = end
	}
	busy.stop()
	spread.stop()
	require.LessOrEqual(t, apart, 0.05, "difference of the mean concurrencies")
	require.LessOrEqual(t, slower, 1.1, "p99 over round_robin's")
}

// concurrency is how many RPCs two nodes have in flight, on average over a time.
func (c *channel) concurrency(over time.Duration, a, b *leastconntest.Node) (atA, atB float64) {
	c.lab.Helper()
	samples, begun := 0.0, time.Now()
	c.lab.wait("samples", func() bool {
		inA, _ := c.inFlight(a)
		inB, _ := c.inFlight(b)
		atA, atB, samples = atA+float64(inA), atB+float64(inB), samples+1
		return time.Since(begun) >= over
	})
	return atA / samples, atB / samples
}

package leastconnbalancer_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Streams that are old and break together come back to their node at once.
func TestDroppedStreamsComeBackEven(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dialWith(guarded(penaltyFor(100*time.Millisecond)), ns...)
	const each = 1000
	held, err := c.OpenTogether(l.ctx, 3*each)
	require.NoError(t, err)
	c.counts(ns, each, each, each)
	opened := time.Now()
	l.wait("the streams are old", func() bool { return time.Since(opened) > 200*time.Millisecond })

	var reopened sync.WaitGroup
	var mu sync.Mutex
	var more []*leastconntest.Stream
	for _, s := range held {
		if s.Node() != "a" {
			continue
		}
		reopened.Go(func() {
			assert.Equal(t, codes.Unavailable, codeOf(s.Wait()))
			again, err := c.Open(l.ctx)
			if assert.NoError(t, err) {
				mu.Lock()
				defer mu.Unlock()
				more = append(more, again)
			}
		})
	}
	ns[0].FailStreams(codes.Unavailable)
	reopened.Wait()
	require.Zero(t, c.penalties())
	for _, n := range ns {
		count, _ := c.inFlight(n)
		require.InDelta(t, each, count, 1, "streams on %s", n.Name())
	}
	require.Len(t, more, each)
}

package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

func TestFootprintThatGrows(t *testing.T) {
	first := footprint{100, 10 << 20, 7}.over(footprint{90, 12 << 20, 8})
	require.Equal(t, footprint{100, 12 << 20, 8}, first)
	most := footprint{first.goroutines + moreGoroutines, first.heap + moreHeap, first.nodes}
	require.NoError(t, most.leakCheck(first))
	require.NoError(t, footprint{}.leakCheck(first))
	assert.EqualError(t, footprint{goroutines: most.goroutines + 1}.leakCheck(first), "111 goroutines, at first 100, at most 110 may be")
	assert.EqualError(t, footprint{heap: most.heap + 1<<20}.leakCheck(first), "21.0 MB of heap, at first 12.0, at most 20.0 may be")
	assert.EqualError(t, footprint{nodes: 9}.leakCheck(first), "9 nodes in ledgers, at first 8")
}

func TestMeasureSeesWhatIsKept(t *testing.T) {
	before := measure()
	stop := make(chan struct{})
	ended := make(chan struct{})
	kept := make([]byte, 32<<20)
	go func() { <-stop; close(ended) }()
	after := measure()
	kept[0] = 1
	assert.Greater(t, after.goroutines, before.goroutines)
	assert.Greater(t, after.heap, before.heap+31<<20)
	close(stop)
	<-ended
}

func TestLeftovers(t *testing.T) {
	require.NoError(t, leftovers{goroutines: -1}.check())
	assert.EqualError(t, leftovers{open: 2}.check(), "2 attempts are open")
	assert.EqualError(t, leftovers{goroutines: 3}.check(), "3 goroutines more than before")
	assert.EqualError(t, leftovers{ledgers: []leastconnbalancer.Snapshot{{ResourceKey: "k", InFlight: 4, Endpoints: make([]leastconnbalancer.EndpointSnapshot, 5)}}}.check(),
		`there is a ledger "k" with 5 nodes, 4 in flight`)
}

// What never comes right is a violation, what comes right is none, and an interrupt is neither.
func TestQuiesceWaits(t *testing.T) {
	q := &quiesce{patience: 20 * time.Millisecond}
	wrong := errors.New("3 are left")
	err := q.wait(t.Context(), "all to end", func() error { return wrong })
	assert.ErrorIs(t, err, wrong)
	assert.ErrorContains(t, err, "waited 20ms for all to end")
	assert.ErrorAs(t, err, new(*violation))

	times := 0
	assert.NoError(t, q.wait(t.Context(), "all to end", func() error {
		if times++; times < 3 {
			return wrong
		}
		return nil
	}))

	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	assert.Equal(t, context.Canceled, q.wait(ctx, "all to end", func() error { return wrong }))
}

func TestQuiesceNamesWhatIsNotOver(t *testing.T) {
	d := &driver{channel: &channel{spec: channelSpec{name: "c"}}}
	q := &quiesce{drivers: []*driver{d}, report: newReport(), patience: time.Millisecond}
	require.NoError(t, q.over(func(d *driver) int64 { return d.soon.Load() })())
	d.soon.Add(2)
	assert.ErrorContains(t, q.check(t.Context(), false), "2 of channel c have not")
	d.soon.Store(0)
	d.later.Add(1)
	assert.ErrorContains(t, q.check(t.Context(), true), "all held RPCs to end: 1 of channel c have not")
}

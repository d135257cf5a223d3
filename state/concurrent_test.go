package state_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// All operations at once, with checks and snapshots between: at the end every
// lease is back, each once, and nothing is left.
func TestEverythingAtOnce(t *testing.T) {
	const workers, own, steps = 64, 8, 150
	l := state.Open("")
	var sets []*state.ReadySet
	var ws []*worker
	for i := range workers {
		w := &worker{listed: map[string]*state.Member{}}
		if i < own {
			w.endpointSet = l.NewEndpointSet(t.Name())
			w.readySet = w.endpointSet.NewReadySet(0)
			sets = append(sets, w.readySet)
		} else { // it shares an endpoint set
			w.endpointSet = ws[i%own].endpointSet
			w.readySet = w.endpointSet.NewReadySet(1)
		}
		ws = append(ws, w)
	}
	start := make(chan struct{})
	var done sync.WaitGroup
	for _, w := range ws {
		w.sets = sets
		done.Go(func() {
			<-start
			w.run(steps)
		})
	}
	close(start)
	for range 5 {
		require.NoError(t, l.Check())
		l.Snapshot()
		l.SnapshotInSteps()
		l.Totals(l.Totals(nil))
	}
	done.Wait()
	require.NoError(t, l.Check())
	require.Eventually(t, func() bool { s := l.Snapshot(); return s.InFlight == 0 && s.Waiting == 0 }, time.Minute, time.Millisecond)
	for _, w := range ws {
		require.Zero(t, w.twice)
		require.Zero(t, w.lost)
		w.endpointSet.Close()
	}
	require.NoError(t, l.Check())
	require.Empty(t, l.Snapshot().Endpoints)
}

// However many release a lease at once, one of them does.
func TestReleaseByManyAtOnce(t *testing.T) {
	const callers, leases = 16, 200
	e := newEnv(t)
	e.add("a", "b")
	e.openMany(2)
	for range leases {
		lease, _, ok := e.readySet.Acquire()
		require.True(t, ok)
		var released [callers]bool
		var done sync.WaitGroup
		for i := range callers {
			done.Go(func() { released[i] = lease.Release() })
		}
		done.Wait()
		n := 0
		for _, r := range released {
			if r {
				n++
			}
		}
		require.Equal(t, 1, n)
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1}, e.loads())
}

// Choosing and counting are one step: however many acquire at once, no endpoint
// is ever two ahead of another. A pick that piles up shows for a while, and is
// made up for later, so the loads are looked at after each one.
func TestNobodyIsEverTwoAhead(t *testing.T) {
	const callers, n, each = 8, 20, 500
	e := newEnv(t)
	e.add(names(n)...)
	leases := make([]map[string][]state.Lease, callers)
	var worst atomic.Int64
	var done sync.WaitGroup
	for i := range callers {
		leases[i] = map[string][]state.Lease{}
		done.Go(func() {
			for range each {
				lease, value, _ := e.readySet.Acquire()
				a := value.(string)
				leases[i][a] = append(leases[i][a], lease)
				endpoints := e.ledger.Snapshot().Endpoints
				low, high := endpoints[0].InFlight, endpoints[0].InFlight
				for _, n := range endpoints {
					low, high = min(low, n.InFlight), max(high, n.InFlight)
				}
				if high-low > 1 {
					worst.Store(high - low)
				}
			}
		})
	}
	done.Wait()
	for _, by := range leases {
		for a, ls := range by {
			e.leases[a] = append(e.leases[a], ls...)
		}
	}
	require.Zero(t, worst.Load(), "an endpoint was that far ahead")
	for _, a := range names(n) {
		require.Len(t, e.leases[a], callers*each/n)
	}
}

package main

import (
	"fmt"
	"runtime"

	"github.com/leastconn/grpc-leastconn/state"
)

// footprint is what the process takes at a full quiet point, when no RPC runs and every channel is connected to every
// server that it lists.
type footprint struct {
	goroutines int
	heap       uint64 // bytes that are reachable
	nodes      int    // of all ledgers
}

// How far footprints may be above the first ones. Of nodes there may be no more, ever.
const (
	moreGoroutines = 10
	moreHeap       = 8 << 20
)

// measure takes the footprint of the process.
func measure() footprint {
	runtime.GC()
	runtime.GC() // for what finalizers and pools have let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f := footprint{goroutines: runtime.NumGoroutine(), heap: m.HeapAlloc}
	for _, s := range state.Snapshots() {
		f.nodes += len(s.Endpoints)
	}
	return f
}

// flat says how the footprint has outgrown the first ones.
func (f footprint) flat(first footprint) error {
	if most := first.goroutines + moreGoroutines; f.goroutines > most {
		return fmt.Errorf("%d goroutines, at first %d, at most %d may be", f.goroutines, first.goroutines, most)
	}
	if most := first.heap + moreHeap; f.heap > most {
		return fmt.Errorf("%.1f MB of heap, at first %.1f, at most %.1f may be", mega(f.heap), mega(first.heap), mega(most))
	}
	if f.nodes > first.nodes {
		return fmt.Errorf("%d nodes in ledgers, at first %d", f.nodes, first.nodes)
	}
	return nil
}

// over returns the larger figures of both.
func (f footprint) over(o footprint) footprint {
	return footprint{max(f.goroutines, o.goroutines), max(f.heap, o.heap), max(f.nodes, o.nodes)}
}

func mega(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

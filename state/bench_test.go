package state_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// loaded returns a ready set of n ready members with the given weights and a ring
// of held leases.
func loaded(n, held int, weight func(int) uint32) (*state.ReadySet, []state.Lease) {
	r := state.Open("").NewEndpointSet("bench")
	v := r.NewReadySet(0)
	eps := make([]state.Identity, n)
	for i := range eps {
		eps[i].Addrs = []string{fmt.Sprint(i)}
	}
	for i, m := range r.Update(nil, eps) {
		v.Set(m, weight(i), i)
	}
	ring := make([]state.Lease, max(held, 1))
	for i := range held {
		ring[i], _, _ = v.Acquire()
	}
	return v, ring
}

// BenchmarkAcquire is the structure alone: one Acquire and one Release of the
// lease that is out for longest.
func BenchmarkAcquire(b *testing.B) {
	weights := map[string]func(int) uint32{
		"equal":    func(int) uint32 { return 1 },
		"four":     func(i int) uint32 { return []uint32{1, 2, 3, 5}[i%4] },
		"distinct": func(i int) uint32 { return uint32(i+1) << 10 },
	}
	for _, name := range []string{"equal", "four", "distinct"} {
		for _, n := range []int{1, 10, 1000, 10000} {
			for _, held := range []int{0, n / 2, 2 * n} {
				b.Run(fmt.Sprintf("weights=%s/n=%d/held=%d", name, n, held), func(b *testing.B) {
					v, ring := loaded(n, held, weights[name])
					replaceOldest(b, v, ring)
				})
			}
		}
	}
}

// replaceOldest gives the oldest lease of the ring back and acquires another, on and on.
func replaceOldest(b *testing.B, v *state.ReadySet, ring []state.Lease) {
	i := 0
	for b.Loop() {
		ring[i].Release()
		ring[i], _, _ = v.Acquire()
		if i++; i == len(ring) {
			i = 0
		}
	}
}

// BenchmarkGuards is the same for 100 endpoints and twice as many leases with
// guards: a penalty, caps that are far or that choices reach, newcomers.
func BenchmarkGuards(b *testing.B) {
	all := state.Guards{
		FailurePenalty: 20 * time.Millisecond,
		SlowStart:      state.SlowStart{Window: time.Hour, MinWeightPercent: 10, Aggression: 1},
		MaxQueued:      100,
	}
	for _, bc := range []struct {
		name   string
		guards state.Guards
		limit  uint32
		joins  int
	}{
		{"none", state.Guards{}, 0, 0},
		{"penalty", state.Guards{FailurePenalty: time.Second}, 0, 0},
		{"cap=far", state.Guards{}, 1000, 0},
		{"cap=near", state.Guards{}, 3, 0},
		{"ramp=1", all, 0, 1},
		{"ramp=50", all, 0, 50},
		{"all", all, 3, 50},
	} {
		b.Run(bc.name, func(b *testing.B) {
			r := state.Open("").NewEndpointSet("bench")
			defer r.Close()
			r.SetGuards(bc.guards)
			v := r.NewReadySet(0)
			list := func(n int, name string) {
				eps := make([]state.Identity, n)
				for i := range eps {
					eps[i].Addrs = []string{fmt.Sprint(name, i)}
				}
				for i, m := range r.Update(nil, eps) {
					m.SetMaxInFlight(bc.limit)
					v.Set(m, 1, i)
				}
			}
			list(100-bc.joins, "old")
			list(bc.joins, "new")
			ring := make([]state.Lease, 200)
			for i := range ring {
				ring[i], _, _ = v.Acquire()
			}
			replaceOldest(b, v, ring)
		})
	}
}

// BenchmarkTakeBack measures what an endpoint's loss costs when that many RPCs were
// granted room on it and have not taken it up: they wait again, at their places.
func BenchmarkTakeBack(b *testing.B) {
	for _, k := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(k), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				r := state.Open("").NewEndpointSet("")
				r.SetGuards(state.Guards{MaxQueued: 2 * k})
				v := r.NewReadySet(0)
				m := r.Update(nil, []state.Identity{{Addrs: []string{"a"}}})[0]
				m.SetMaxInFlight(1)
				v.Set(m, 1, "a")
				held, _, _ := v.Acquire()
				ctx, cancel := context.WithCancel(context.Background())
				for range 2 * k {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					r.AcquireOrQueue(ctx, nil, v)
				}
				m.SetMaxInFlight(uint32(k) + 1)
				b.StartTimer()
				v.Remove(m)
				b.StopTimer()
				cancel()
				held.Release()
				r.Close()
			}
		})
	}
}

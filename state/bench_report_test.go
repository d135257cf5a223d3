package state_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// reporting returns a ready set of n members that choose by reports, two RPCs in flight
// for each, and what lets the next member report.
func reporting(n int, weight func(int) uint32, on bool) (*state.ReadySet, []state.Lease, func()) {
	r := state.Open("").NewEndpointSet("bench")
	if on {
		r.SetReports(10 * time.Second)
	}
	v := r.NewReadySet(0)
	eps := make([]state.Identity, n)
	for i := range eps {
		eps[i].Addrs = []string{fmt.Sprint(i)}
	}
	members := r.Update(nil, eps)
	for i, m := range members {
		v.Set(m, weight(i), i)
	}
	ring := make([]state.Lease, 2*n)
	for i := range ring {
		ring[i], _, _ = v.Acquire()
	}
	i := 0
	report := func() {
		members[i].Report(20, 1)
		if i++; i == n {
			i = 0
		}
	}
	for range members {
		report()
	}
	return v, ring, report
}

// BenchmarkReports is Acquire and Release with reports and without, and a report.
func BenchmarkReports(b *testing.B) {
	weights := map[string]func(int) uint32{
		"equal": func(int) uint32 { return 1 },
		"four":  func(i int) uint32 { return []uint32{1, 2, 3, 5}[i%4] },
	}
	for _, name := range []string{"equal", "four"} {
		for _, n := range []int{10, 100, 1000} {
			for _, on := range []bool{false, true} {
				b.Run(fmt.Sprintf("acquire/weights=%s/n=%d/on=%t", name, n, on), func(b *testing.B) {
					v, ring, report := reporting(n, weights[name], on)
					i := 0
					for b.Loop() {
						if i%1000 == 0 {
							report()
						}
						ring[i%len(ring)].Release()
						ring[i%len(ring)], _, _ = v.Acquire()
						i++
					}
				})
			}
			b.Run(fmt.Sprintf("report/weights=%s/n=%d", name, n), func(b *testing.B) {
				_, _, report := reporting(n, weights[name], true)
				b.ReportAllocs()
				for b.Loop() {
					report()
				}
			})
		}
	}
}

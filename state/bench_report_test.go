package state_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// reporting returns a ready set of n members that choose by reports, one of as many as
// there are channels, two RPCs in flight for each member, and what lets the next one report.
func reporting(n, channels int, weight func(int) uint32, on bool) (*state.ReadySet, []state.Lease, func()) {
	l := state.Open("")
	eps := make([]state.Identity, n)
	for i := range eps {
		eps[i].Addrs = []string{fmt.Sprint(i)}
	}
	var v *state.ReadySet
	var members []*state.Member
	for range channels {
		r := l.NewEndpointSet("bench")
		if on {
			r.SetReports(10 * time.Second)
		}
		v = r.NewReadySet(0)
		members = r.Update(nil, eps)
		for i, m := range members {
			v.Set(m, weight(i), i)
		}
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

// BenchmarkReports is Acquire and Release with reports and without, and a report, also of
// a channel among some that list the same endpoints.
func BenchmarkReports(b *testing.B) {
	weights := map[string]func(int) uint32{
		"equal": func(int) uint32 { return 1 },
		"four":  func(i int) uint32 { return []uint32{1, 2, 3, 5}[i%4] },
	}
	for _, bc := range []struct {
		weights     string
		n, channels int
	}{
		{"equal", 10, 1}, {"equal", 100, 1}, {"equal", 1000, 1}, {"equal", 1000, 50},
		{"four", 10, 1}, {"four", 100, 1}, {"four", 1000, 1},
	} {
		size := fmt.Sprintf("weights=%s/n=%d/channels=%d", bc.weights, bc.n, bc.channels)
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("acquire/%s/on=%t", size, on), func(b *testing.B) {
				v, ring, report := reporting(bc.n, bc.channels, weights[bc.weights], on)
				b.ReportAllocs()
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
		b.Run("report/"+size, func(b *testing.B) {
			_, _, report := reporting(bc.n, bc.channels, weights[bc.weights], true)
			b.ReportAllocs()
			for b.Loop() {
				report()
			}
		})
	}
}

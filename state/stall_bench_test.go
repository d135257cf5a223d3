package state_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// The benchmarks of stalls show how long a pick waits for the ledger's mutex while
// something else is done to a ledger of many endpoints and channels. One channel is the control.

// stalls are what picks have waited while something was done, over and over.
type stalls struct {
	*testing.B
	readySet *state.ReadySet // which picks are made through
	waits    []time.Duration
	longest  []time.Duration // each time
}

// while picks every now and then until do is over.
func (s *stalls) while(do func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	began := len(s.waits)
	go func() {
		defer close(stopped)
		for over := false; !over; {
			select {
			case <-stop:
				over = true
			case <-time.After(200 * time.Microsecond):
			}
			at := time.Now()
			lease, _, _ := s.readySet.Acquire()
			s.waits = append(s.waits, time.Since(at))
			lease.Release()
		}
	}()
	time.Sleep(2 * time.Millisecond)
	s.StartTimer()
	do()
	s.StopTimer()
	close(stop)
	<-stopped
	s.longest = append(s.longest, slices.Max(s.waits[began:]))
}

// report reports the longest wait, as a median over the times that something was
// done, and the 99th percentile of all waits.
func (s *stalls) report() {
	us := func(ds []time.Duration, percent int) float64 {
		slices.Sort(ds)
		return float64(ds[len(ds)*percent/100]) / float64(time.Microsecond)
	}
	s.ReportMetric(us(s.longest, 50), "µs-longest")
	s.ReportMetric(us(s.waits, 99), "µs-p99")
}

// process is channels of a process that list the same endpoints.
type process struct {
	ledger  *state.Ledger
	list    []state.Identity
	sets    []*state.EndpointSet
	serving []*state.ReadySet
	gauges  []*state.LedgerTotals // that each channel has shown last
}

func newProcess(b *testing.B, endpoints, channels int) *process {
	f := &process{ledger: state.Open("")}
	for i := range endpoints {
		f.list = append(f.list, state.Identity{Addrs: []string{fmt.Sprintf("10.0.%d.%d:80", i/256, i%256), fmt.Sprintf("[fd00::%x]:80", i)}})
	}
	for range channels {
		r, v := f.channel(state.Guards{})
		f.serve(r, v)
	}
	b.Cleanup(func() {
		for _, r := range f.sets {
			r.Close()
		}
	})
	return f
}

// channel adds a channel without endpoints.
func (f *process) channel(g state.Guards) (*state.EndpointSet, *state.ReadySet) {
	r := f.ledger.NewEndpointSet(fmt.Sprint("channel ", len(f.sets)))
	r.SetGuards(g)
	v := r.NewReadySet(0)
	f.sets, f.serving = append(f.sets, r), append(f.serving, v)
	return r, v
}

func (f *process) serve(r *state.EndpointSet, v *state.ReadySet) []*state.Member {
	ms := r.Update(nil, f.list)
	for i, m := range ms {
		v.Set(m, 1, i)
	}
	return ms
}

func perChannels(b *testing.B, run func(b *testing.B, channels int)) {
	for _, channels := range []int{1, 50} {
		b.Run(fmt.Sprintf("channels=%d", channels), func(b *testing.B) { run(b, channels) })
	}
}

// newcomer adds a channel that lists nothing but an endpoint of its own. Picks
// through it meet nothing but the mutex.
func (f *process) newcomer(b *testing.B) *stalls {
	r, v := f.channel(state.Guards{})
	v.Set(r.Update(nil, []state.Identity{{Addrs: []string{"own"}}})[0], 1, 0)
	return &stalls{B: b, readySet: v}
}

// BenchmarkStallSlowStart: all but one of 1,000 endpoints start slowly, for a second
// each time.
func BenchmarkStallSlowStart(b *testing.B) {
	perChannels(b, func(b *testing.B, channels int) {
		f := newProcess(b, 1000, 0)
		for range channels {
			r, v := f.channel(state.Guards{SlowStart: state.SlowStart{Window: time.Minute, MinWeightPercent: 1, Aggression: 1}})
			v.Set(r.Update(nil, f.list[:1])[0], 1, 0)
		}
		for i, r := range f.sets {
			for k, m := range r.Update(nil, f.list[1:]) {
				f.serving[i].Set(m, 1, k)
			}
		}
		s := f.newcomer(b)
		for b.Loop() {
			b.StopTimer()
			s.while(func() { time.Sleep(time.Second) })
			b.StartTimer()
		}
		s.report()
	})
}

// BenchmarkStallOpen: one more channel lists 10,000 endpoints.
func BenchmarkStallOpen(b *testing.B) {
	perChannels(b, func(b *testing.B, channels int) {
		f := newProcess(b, 10_000, channels-1)
		s := f.newcomer(b)
		for b.Loop() {
			b.StopTimer()
			r := f.ledger.NewEndpointSet("opens")
			s.while(func() { r.Update(nil, f.list) })
			r.Close()
			b.StartTimer()
		}
		s.report()
	})
}

// BenchmarkStallReady: the 10,000 endpoints of one more channel become ready.
func BenchmarkStallReady(b *testing.B) {
	perChannels(b, func(b *testing.B, channels int) {
		f := newProcess(b, 10_000, channels-1)
		s := f.newcomer(b)
		for b.Loop() {
			b.StopTimer()
			r := f.ledger.NewEndpointSet("opens")
			v := r.NewReadySet(0)
			ms := r.Update(nil, f.list)
			s.while(func() {
				for i, m := range ms {
					v.Set(m, 1, i)
				}
			})
			r.Close()
			b.StartTimer()
		}
		s.report()
	})
}

// BenchmarkStallClose: a channel that lists 10,000 endpoints closes.
func BenchmarkStallClose(b *testing.B) {
	perChannels(b, func(b *testing.B, channels int) {
		f := newProcess(b, 10_000, channels-1)
		s := f.newcomer(b)
		for b.Loop() {
			b.StopTimer()
			r := f.ledger.NewEndpointSet("closes")
			f.serve(r, r.NewReadySet(0))
			s.while(r.Close)
			b.StartTimer()
		}
		s.report()
	})
}

// BenchmarkStallLeave: a channel's 10,000 endpoints leave its list.
func BenchmarkStallLeave(b *testing.B) {
	perChannels(b, func(b *testing.B, channels int) {
		f := newProcess(b, 10_000, channels-1)
		s := f.newcomer(b)
		for b.Loop() {
			b.StopTimer()
			r := f.ledger.NewEndpointSet("shrinks")
			ms := f.serve(r, r.NewReadySet(0))
			s.while(func() { r.Update(ms, nil) })
			r.Close()
			b.StartTimer()
		}
		s.report()
	})
}

// BenchmarkStallSnapshot: a ledger of 10,000 endpoints and a million leases is looked
// at, in each of the ways that there are.
func BenchmarkStallSnapshot(b *testing.B) {
	perChannels(b, func(b *testing.B, channels int) {
		f := newProcess(b, 10_000, channels)
		var leases []state.Lease
		for i := range 1_000_000 {
			lease, _, _ := f.serving[i%channels].Acquire()
			leases = append(leases, lease)
		}
		for name, do := range looks {
			b.Run(name, func(b *testing.B) {
				s := f.newcomer(b)
				for b.Loop() {
					b.StopTimer()
					s.while(func() { do(f, channels) })
					b.StartTimer()
				}
				s.report()
			})
		}
		for _, lease := range leases {
			lease.Release()
		}
	})
}

var looks = map[string]func(f *process, channels int){
	"snapshot": func(f *process, _ int) { f.ledger.Snapshot() },
	"page":     func(f *process, _ int) { f.ledger.SnapshotInSteps() },
	"gauges": func(f *process, channels int) { // a collection by all channels, without what they record
		if f.gauges == nil {
			f.gauges = make([]*state.LedgerTotals, channels)
		}
		for i := range f.gauges {
			f.gauges[i] = f.ledger.Totals(f.gauges[i])
		}
	},
}

package leastconnbalancer

import (
	"sync"
	"time"
	"weak"

	"google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/state"
)

// flushPeriod is how often counters are recorded where no gauge is collected,
// which is when they are else.
const flushPeriod = 10 * time.Second

// meter records a balancer's metrics. A pick only counts in load state; the
// counters' growth is recorded from time to time and when the balancer closes.
// It holds the ledger weakly.
type meter struct {
	recorder stats.MetricsRecorder
	target   string
	stop     func() // ends the collection of gauges

	// mu guards what follows. Nothing is recorded under it: recorders have locks
	// of their own, which they hold when they collect.
	mu        sync.Mutex
	set       weak.Pointer[state.EndpointSet]
	locality  string
	recorded  state.Counters
	collected bool // since the timer was last due
	closed    bool
	timer     *time.Timer
}

func newMeter(recorder stats.MetricsRecorder, target string) *meter {
	m := &meter{recorder: recorder, target: target}
	m.mu.Lock() // it may be due before there is a list
	m.timer = time.AfterFunc(flushPeriod, m.due)
	m.mu.Unlock()
	m.stop = recorder.RegisterAsyncReporter(stats.AsyncMetricReporterFunc(m.report), gauges...)
	return m
}

// watch makes the endpoint set the one to report on. A balancer has one locality.
func (m *meter) watch(r *state.EndpointSet, locality string) {
	m.mu.Lock()
	grown := m.grown()
	if next := weak.Make(r); m.set != next {
		m.set, m.recorded = next, state.Counters{}
	}
	m.locality = locality
	m.mu.Unlock()
	m.record(grown, locality)
}

// grown returns by how much the counters have grown since it was last called, in
// the order of counts. Caller holds mu.
func (m *meter) grown() []uint64 {
	r := m.set.Value()
	if r == nil {
		return nil
	}
	now := r.Counters()
	by := make([]uint64, len(counts))
	for i, c := range counts {
		by[i] = c.of(now) - c.of(m.recorded)
	}
	m.recorded = now
	return by
}

// record records growth, and that there was none: a counter is seen at 0 before
// it counts, so that nothing is missed of what it counts first.
func (m *meter) record(grown []uint64, locality string) {
	for i, by := range grown {
		counts[i].handle.Record(m.recorder, int64(by), m.target, locality)
	}
}

// due records the counters when nobody collects.
func (m *meter) due() {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	var grown []uint64
	if !m.collected {
		grown = m.grown()
	}
	m.collected = false
	locality := m.locality
	m.timer.Reset(flushPeriod)
	m.mu.Unlock()
	m.record(grown, locality)
}

// report is called when gauges are collected.
func (m *meter) report(r stats.AsyncMetricsRecorder) error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.collected = true
	grown, locality, roster := m.grown(), m.locality, m.set.Value()
	m.mu.Unlock()
	m.record(grown, locality)
	if roster != nil {
		recordGauges(r, roster.Ledger().Snapshot(), m.target, locality)
	}
	return nil
}

// close records what is left and reports no more. RPCs that end later are not
// counted any more.
func (m *meter) close() {
	m.mu.Lock()
	was := m.closed
	m.closed = true
	grown, locality, timer := m.grown(), m.locality, m.timer
	m.mu.Unlock()
	if was {
		return
	}
	timer.Stop()
	m.stop()
	m.record(grown, locality)
}

package leastconnbalancer

import (
	"math"
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
	collected bool          // since the timer was last due
	totals    *state.Totals // that were reported last
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

// follow makes the endpoint set the one to report on. A balancer has one locality.
func (m *meter) follow(set *state.EndpointSet, locality string) {
	m.mu.Lock()
	grown := m.grownLocked()
	if next := weak.Make(set); m.set != next {
		m.set, m.recorded = next, state.Counters{}
	}
	m.locality = locality
	m.mu.Unlock()
	m.record(grown, locality)
}

// grown returns by how much the counters have grown since it was last called, in
// the order of counts.
func (m *meter) grownLocked() []uint64 {
	set := m.set.Value()
	if set == nil {
		return nil
	}
	now := set.Counters()
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
		grown = m.grownLocked()
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
	grown, locality, set, last := m.grownLocked(), m.locality, m.set.Value(), m.totals
	m.mu.Unlock()
	m.record(grown, locality)
	if set == nil {
		return nil
	}
	t := set.Ledger().Totals(last)
	m.mu.Lock()
	m.totals = t
	m.mu.Unlock()
	recordGauges(r, t, m.target, locality)
	return nil
}

// close records what is left and reports no more. RPCs that end later are not
// counted any more.
func (m *meter) close() {
	m.mu.Lock()
	was := m.closed
	m.closed = true
	grown, locality, timer := m.grownLocked(), m.locality, m.timer
	m.mu.Unlock()
	if was {
		return
	}
	timer.Stop()
	m.stop()
	m.record(grown, locality)
}

// recordGauges records what a ledger has in all.
func recordGauges(to stats.AsyncMetricsRecorder, t *state.Totals, target, locality string) {
	for _, n := range t.ByAddress {
		inFlightGauge.Record(to, n.InFlight, target, locality, n.Address)
	}
	// Last: where the endpoint label is off, all of these are one series, and the
	// last one is its value.
	inFlightGauge.Record(to, t.InFlight, target, locality, "")
	for _, is := range state.EndpointStates {
		endpointsGauge.Record(to, t.Endpoints[is], target, string(is), locality)
	}
	queueLengthGauge.Record(to, t.Waiting, target, locality)
	imbalanceGauge.Record(to, int64(math.Round(t.Imbalance)), target, locality)
	oldestGauge.Record(to, int64(t.OldestSeconds), target, locality)
}

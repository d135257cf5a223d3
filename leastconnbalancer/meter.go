package leastconnbalancer

import (
	"slices"
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
	gauges   *gaugeReporter

	// mu guards what follows. Nothing is recorded under it: recorders have locks
	// of their own, which they hold when they collect.
	mu        sync.Mutex
	set       weak.Pointer[state.EndpointSet]
	labels    []string // optional ones
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
	m.gauges = joinGauges(m)
	return m
}

// follow makes the endpoint set the one to report on, with its labels. A balancer has one
// locality and one cluster.
func (m *meter) follow(set *state.EndpointSet, locality, cluster string) {
	set.SetLabels(locality, cluster)
	m.gauges.follow(set.Ledger())
	m.mu.Lock()
	grown := m.grownLocked()
	if next := weak.Make(set); m.set != next {
		m.set, m.recorded = next, state.Counters{}
	}
	m.labels = optionalValues(state.Labels{Locality: locality, Cluster: cluster}, set.Ledger().Key())
	m.mu.Unlock()
	m.record(grown)
}

// growth is by how much counters have grown.
type growth struct {
	by         []uint64 // in the order of counts
	byEndpoint []state.EndpointCounts
	labels     []string // optional ones
}

// grownLocked returns by how much the counters have grown since it was last called.
func (m *meter) grownLocked() growth {
	set := m.set.Value()
	if set == nil {
		return growth{}
	}
	now := set.Counters()
	g := growth{make([]uint64, len(counts)), set.TakeEndpointCounts(), m.labels}
	for i, c := range counts {
		if c.of != nil {
			g.by[i] = c.of(now) - c.of(m.recorded)
		}
	}
	m.recorded = now
	return g
}

// record records growth, and that there was none: a counter is seen at 0 before
// it counts, so that nothing is missed of what it counts first.
func (m *meter) record(g growth) {
	for i, by := range g.by {
		c := counts[i]
		labels := slices.Concat([]string{m.target}, c.labels, g.labels)
		if c.of != nil {
			c.handle.Record(m.recorder, int64(by), labels...)
			continue
		}
		// Where the endpoint label is off, all of these are one series, and their sum is
		// its value. So the series without an endpoint is no sum: it stays at 0.
		c.handle.Record(m.recorder, 0, append(slices.Clip(labels), "")...)
		for _, e := range g.byEndpoint {
			if by := c.ofEndpoint(e); by > 0 || e.First {
				c.handle.Record(m.recorder, int64(by), append(slices.Clip(labels), e.Address)...)
			}
		}
	}
}

// due records the counters when nobody collects.
func (m *meter) due() {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	var grown growth
	if !m.collected {
		grown = m.grownLocked()
	}
	m.collected = false
	m.timer.Reset(flushPeriod)
	m.mu.Unlock()
	m.record(grown)
}

// collect records the counters when gauges are collected.
func (m *meter) collect() {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.collected = true
	grown := m.grownLocked()
	m.mu.Unlock()
	m.record(grown)
}

// close records what is left and reports no more. RPCs that end later are not
// counted any more.
func (m *meter) close() {
	m.mu.Lock()
	was := m.closed
	m.closed = true
	grown, timer := m.grownLocked(), m.timer
	m.mu.Unlock()
	if was {
		return
	}
	timer.Stop()
	m.gauges.leave(m)
	m.record(grown)
}

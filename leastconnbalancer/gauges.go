package leastconnbalancer

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"weak"

	"google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/state"
)

// Balancers of one target, as below xDS or in several channels, have gauges whose labels do not
// tell them apart. So it is not balancers that report but targets, once to each recorder: what all
// balancers of the target in this process have.
var targets = struct {
	// mu guards the targets and their fields that say so. Recorders are not called under it: they
	// have locks of their own, which they hold when they collect.
	mu sync.Mutex
	by map[any]*targetGauges
}{by: map[any]*targetGauges{}}

// targetGauges are the gauges of a target.
type targetGauges struct {
	target string

	// targets.mu guards these.
	reporters map[any]*gaugeReporter       // by recorder
	ledgers   []weak.Pointer[state.Ledger] // that its balancers use, or have used

	making sync.Mutex            // held while series are made, before targets.mu and ledgers' locks
	of     []*state.LedgerTotals // which the series are made of
	series []state.Series
}

// gaugeReporter reports a target's gauges to a recorder, for some balancers.
type gaugeReporter struct {
	gauges *targetGauges
	keys   [2]any
	last   map[weak.Pointer[state.Ledger]]weak.Pointer[state.LedgerTotals] // that were reported last; making guards it

	// targets.mu guards these.
	meters map[*meter]struct{}
	stop   func() // ends the collection; nil before it has begun
}

// joinGauges lets the meter's balancer have part in its target's gauges.
func joinGauges(m *meter) *gaugeReporter {
	var recorder, target any = m.recorder, m.target
	if !reflect.ValueOf(recorder).Comparable() {
		recorder = m
	}
	if m.target == "" {
		target = recorder // nobody's but its own
	}
	targets.mu.Lock()
	t := targets.by[target]
	if t == nil {
		t = &targetGauges{target: m.target, reporters: map[any]*gaugeReporter{}}
		targets.by[target] = t
	}
	r := t.reporters[recorder]
	fresh := r == nil
	if fresh {
		r = &gaugeReporter{
			gauges: t, keys: [2]any{target, recorder}, meters: map[*meter]struct{}{},
		}
		t.reporters[recorder] = r
	}
	r.meters[m] = struct{}{}
	targets.mu.Unlock()
	if fresh {
		r.setStop(m.recorder.RegisterAsyncReporter(stats.AsyncMetricReporterFunc(r.report), gauges...))
	}
	return r
}

// setStop sets what ends the collection, which may be over already.
func (r *gaugeReporter) setStop(stop func()) {
	targets.mu.Lock()
	over := len(r.meters) == 0
	r.stop = stop
	targets.mu.Unlock()
	if over {
		stop()
	}
}

// leave ends the part of the meter's balancer, with the last one the collection.
func (r *gaugeReporter) leave(m *meter) {
	targets.mu.Lock()
	delete(r.meters, m)
	stop := r.stop
	last := len(r.meters) == 0
	if last {
		delete(r.gauges.reporters, r.keys[1])
		if len(r.gauges.reporters) == 0 {
			delete(targets.by, r.keys[0])
		}
	}
	targets.mu.Unlock()
	if last && stop != nil {
		stop()
	}
}

// follow lets the target's gauges show a ledger that one of its balancers uses.
func (r *gaugeReporter) follow(l *state.Ledger) {
	targets.mu.Lock()
	defer targets.mu.Unlock()
	if p := weak.Make(l); !slices.Contains(r.gauges.ledgers, p) {
		r.gauges.ledgers = append(r.gauges.ledgers, p)
	}
}

// report is called when gauges are collected.
func (r *gaugeReporter) report(to stats.AsyncMetricsRecorder) error {
	targets.mu.Lock()
	meters := slices.Collect(maps.Keys(r.meters))
	targets.mu.Unlock()
	if len(meters) == 0 {
		return nil
	}
	for _, m := range meters {
		m.collect()
	}
	for _, s := range r.gauges.update(r) {
		recordGauges(to, &s)
	}
	return nil
}

// update returns the target's series as of now, or those that another reporter was just given.
func (t *targetGauges) update(r *gaugeReporter) []state.Series {
	t.making.Lock()
	defer t.making.Unlock()
	var of []*state.LedgerTotals
	last := map[weak.Pointer[state.Ledger]]weak.Pointer[state.LedgerTotals]{}
	for _, p := range t.followed() {
		if l := p.Value(); l != nil {
			totals := l.Totals(r.last[p].Value())
			if totals.Has(t.target) || l.Serves(t.target) {
				of, last[p] = append(of, totals), weak.Make(totals)
				continue
			}
		}
		t.forget(p)
	}
	r.last = last
	if !slices.Equal(of, t.of) {
		t.of, t.series = of, state.SeriesOf(t.target, of)
	}
	return t.series
}

// followed returns the ledgers that the target's balancers use, or have used.
func (t *targetGauges) followed() []weak.Pointer[state.Ledger] {
	targets.mu.Lock()
	defer targets.mu.Unlock()
	return slices.Clone(t.ledgers)
}

// forget drops a ledger that is gone, or has nothing of the target any more.
func (t *targetGauges) forget(p weak.Pointer[state.Ledger]) {
	targets.mu.Lock()
	defer targets.mu.Unlock()
	t.ledgers = slices.DeleteFunc(t.ledgers, func(q weak.Pointer[state.Ledger]) bool { return p == q })
}

// optionalLabels are those that all of the policy's metrics have.
var optionalLabels = []string{labelLocality, labelBackendService, labelResourceKey}

// optionalValues returns the values of optionalLabels.
func optionalValues(l state.Labels, key string) []string { return []string{l.Locality, l.Cluster, key} }

// recordGauges records a series, with the states and endpoints that it is split by.
func recordGauges(to stats.AsyncMetricsRecorder, s *state.Series) {
	common := optionalValues(s.Labels, s.Key)
	all := append([]string{s.Target}, common...)
	byEndpoint := func(address string) []string { return append(slices.Clip(all), address) }
	capacity, weight := int64(0), 0.0
	for _, n := range s.ByAddress {
		inFlightGauge.Record(to, n.InFlight, byEndpoint(n.Address)...)
		effectiveWeightGauge.Record(to, thousandths(n.EffectiveWeight), byEndpoint(n.Address)...)
		weight += n.EffectiveWeight
		if n.MaxInFlight > 0 {
			maxInFlightGauge.Record(to, n.MaxInFlight, byEndpoint(n.Address)...)
			capacity += n.MaxInFlight
		}
	}
	// Last: where the endpoint label is off, all of these are one series, and the
	// last one is its value.
	inFlightGauge.Record(to, s.InFlight, byEndpoint("")...)
	effectiveWeightGauge.Record(to, thousandths(weight), byEndpoint("")...)
	if capacity > 0 {
		maxInFlightGauge.Record(to, capacity, byEndpoint("")...)
	}
	for _, is := range state.EndpointStates {
		endpointsGauge.Record(to, s.Endpoints[is], append([]string{s.Target, string(is)}, common...)...)
	}
	queueLengthGauge.Record(to, s.Waiting, all...)
	imbalanceGauge.Record(to, int64(math.Round(s.Imbalance)), all...)
	oldestGauge.Record(to, int64(s.OldestSeconds), all...)
	if s.Fleet.IntervalSeconds > 0 {
		recordFleet(to, s, all, byEndpoint)
	}
}

func thousandths(weight float64) int64 { return int64(math.Round(1000 * weight)) }

// recordFleet records what servers say of a series' endpoints. An endpoint that has
// never reported has no series.
func recordFleet(to stats.AsyncMetricsRecorder, s *state.Series, all []string, byEndpoint func(string) []string) {
	oldest, known := 0.0, false
	for _, n := range s.ByAddress {
		r := n.Report
		if r.Told {
			othersInFlightGauge.Record(to, r.Others, byEndpoint(n.Address)...)
		}
		if r.Told || r.AgeSeconds > 0 {
			reportAgeGauge.Record(to, int64(r.AgeSeconds), byEndpoint(n.Address)...)
			oldest, known = max(oldest, r.AgeSeconds), true
		}
	}
	othersInFlightGauge.Record(to, s.Fleet.Others, byEndpoint("")...) // last: see recordGauges
	if known {
		reportAgeGauge.Record(to, int64(oldest), byEndpoint("")...)
	}
	silentEndpointsGauge.Record(to, s.Fleet.Silent, all...)
	fleetImbalanceGauge.Record(to, int64(math.Round(s.Fleet.Imbalance)), all...)
}

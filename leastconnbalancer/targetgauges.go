package leastconnbalancer

import (
	"maps"
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
	mu    sync.Mutex
	by    map[any]*targetGauges
	quiet map[string]*targetGauges // of those, the ones without reporters
}{by: map[any]*targetGauges{}, quiet: map[string]*targetGauges{}}

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
	delete(targets.quiet, t.target)
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
	forgetQuiet()
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

// leave ends the part of the meter's balancer, with the last one the collection. What the
// target has in flight then is shown again with its next balancer.
func (r *gaugeReporter) leave(m *meter) {
	targets.mu.Lock()
	delete(r.meters, m)
	stop := r.stop
	last := len(r.meters) == 0
	if last {
		t := r.gauges
		delete(t.reporters, r.keys[1])
		switch {
		case len(t.reporters) > 0:
		case t.target == "":
			delete(targets.by, r.keys[0])
		default:
			targets.quiet[t.target] = t
		}
	}
	targets.mu.Unlock()
	forgetQuiet()
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
		t.unfollow(p)
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

// unfollow drops a ledger that is gone, or has nothing of the target any more.
func (t *targetGauges) unfollow(p weak.Pointer[state.Ledger]) {
	targets.mu.Lock()
	defer targets.mu.Unlock()
	if l := p.Value(); l != nil && l.Serves(t.target) {
		return // a balancer has come meanwhile
	}
	t.ledgers = slices.DeleteFunc(t.ledgers, func(q weak.Pointer[state.Ledger]) bool { return p == q })
}

// forgetQuiet forgets the targets without reporters that have nothing in flight any more. That is
// looked at when balancers come or go.
func forgetQuiet() {
	targets.mu.Lock()
	quiet := slices.Collect(maps.Values(targets.quiet))
	targets.mu.Unlock()
	for _, t := range quiet {
		for _, p := range t.followed() {
			if l := p.Value(); l == nil || !l.Serves(t.target) && !l.Totals(nil).Has(t.target) {
				t.unfollow(p)
			}
		}
		t.making.Lock()
		targets.mu.Lock()
		if targets.quiet[t.target] == t {
			t.of, t.series = nil, nil
			if len(t.ledgers) == 0 {
				delete(targets.quiet, t.target)
				delete(targets.by, any(t.target))
			}
		}
		targets.mu.Unlock()
		t.making.Unlock()
	}
}

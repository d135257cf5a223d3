package state

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"time"
)

// Series are the totals of what has the same labels in metrics.
type Series struct {
	Key string // the resource key
	Labels
	Totals
}

// dimensions of a series are its labels that metrics may be without.
const dimensions = 3

// row is a series in the making.
type row struct {
	waiting   int64
	interval  time.Duration // of reports, the shortest
	endpoints []endpointTotal
	last      *endpointTotal // which the last of endpoints comes from
	ledgers   []int          // where the endpoints of each ledger begin
	most      imbalances     // that one of the finest series has
}

// imbalances are those of a series.
type imbalances struct{ own, fleet float64 }

// name is a series without its totals.
type name struct{ key, locality, cluster string }

// SeriesOf returns the series of a target in some ledgers. An endpoint is the target's that one
// of its endpoint sets lists, or none any more while RPCs are in flight that may be the target's.
//
// Metrics may be without a label, and then of several series the last one is what they show.
// So there is a series for each choice of labels that have several values, with the others empty:
// it has the endpoints of all of their values, each once, and comes after those that it is made
// of. Imbalance alone is the most of theirs, since nobody makes them level with each other.
func SeriesOf(target string, of []*LedgerTotals) []Series {
	if s, ok := onlySeries(target, of); ok {
		return []Series{s}
	}
	finest := namesOf(target, of)
	several := uint(0) // values: a bit for each dimension
	for i := range dimensions {
		for _, n := range finest {
			if n.dimension(i) != finest[0].dimension(i) {
				several |= 1 << i
			}
		}
	}
	var all []Series
	finestHave := map[name]imbalances{}
	for _, kept := range subsets(several) {
		rows := map[name]*row{}
		for _, n := range finest {
			p := n.keep(^several | kept)
			if rows[p] == nil {
				rows[p] = &row{}
			}
			most, has := &rows[p].most, finestHave[n]
			most.own, most.fleet = max(most.own, has.own), max(most.fleet, has.fleet)
		}
		for _, t := range of {
			t.fill(target, func(n name) *row { return rows[n.keep(^several|kept)] })
		}
		for _, n := range slices.SortedFunc(maps.Keys(rows), compareNames) {
			rows[n].shareOthers()
			s := Series{n.key, Labels{target, n.locality, n.cluster}, sum(rows[n].endpoints)}
			s.Waiting, s.Fleet.IntervalSeconds = rows[n].waiting, rows[n].interval.Seconds()
			if kept == several {
				finestHave[n] = imbalances{s.Imbalance, s.Fleet.Imbalance}
			} else {
				s.Imbalance, s.Fleet.Imbalance = rows[n].most.own, rows[n].most.fleet
			}
			all = append(all, s)
		}
	}
	return all
}

// onlySeries returns the ledger's totals where they are all that there is.
func onlySeries(target string, of []*LedgerTotals) (Series, bool) {
	if len(of) != 1 || len(of[0].labels) != 1 {
		return Series{}, false
	}
	for is := range of[0].labels {
		if l := is.Value(); l.Target == target {
			return Series{of[0].key, l, of[0].Totals}, true
		}
	}
	return Series{}, false
}

// Has reports whether a target had endpoint sets in the ledger, or endpoints.
func (t *LedgerTotals) Has(target string) bool {
	for is := range t.labels {
		if is.Value().Target == target {
			return true
		}
	}
	return false
}

// Serves reports whether the ledger has an endpoint set of the target.
func (l *Ledger) Serves(target string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.sets {
		if r.name == target {
			return true
		}
	}
	return false
}

// fill adds the ledger's endpoints and the RPCs that wait there to the rows.
func (t *LedgerTotals) fill(target string, rowOf func(name) *row) {
	rows := map[labels]*row{}
	for is, waiting := range t.labels {
		if l := is.Value(); l.Target == target {
			rows[is] = rowOf(name{t.key, l.Locality, l.Cluster})
			rows[is].beginLedger()
			rows[is].waiting += waiting
			if was := rows[is].interval; t.interval > 0 && (was == 0 || t.interval < was) {
				rows[is].interval = t.interval
			}
		}
	}
	for i := range t.endpoints {
		e := &t.endpoints[i]
		if e.parts == nil {
			rows[e.labels].add(e, e.summary)
		}
		for _, part := range e.parts {
			rows[part.labels].add(e, part)
		}
	}
}

// beginLedger notes that endpoints of another ledger come.
func (r *row) beginLedger() {
	if begin := len(r.endpoints); len(r.ledgers) == 0 || r.ledgers[len(r.ledgers)-1] != begin {
		r.ledgers = append(r.ledgers, begin)
	}
}

// add adds an endpoint, or what more is said of it. There is no row of other targets.
func (r *row) add(e *endpointTotal, s summary) {
	if r == nil {
		return
	}
	if r.last != e {
		r.endpoints, r.last = append(r.endpoints, *e), e
		r.endpoints[len(r.endpoints)-1].summary = s
		return
	}
	was := &r.endpoints[len(r.endpoints)-1].summary
	limits := [2]int64{was.maxInFlight, s.maxInFlight}
	if s.compare(*was) < 0 {
		*was = s
	}
	for _, limit := range limits {
		if limit > 0 {
			was.lowerCap(limit)
		}
	}
}

// compare is below 0 where s says the better of an endpoint.
func (s summary) compare(t summary) int {
	return cmp.Or(
		cmp.Compare(slices.Index(EndpointStates, s.state), slices.Index(EndpointStates, t.state)),
		cmp.Compare(s.priority, t.priority))
}

// namesOf returns the names of a target's finest series, each once.
func namesOf(target string, of []*LedgerTotals) (names []name) {
	for _, t := range of {
		for is := range t.labels {
			if l := is.Value(); l.Target == target {
				names = append(names, name{t.key, l.Locality, l.Cluster})
			}
		}
	}
	slices.SortFunc(names, compareNames)
	return slices.Compact(names)
}

func compareNames(a, b name) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.locality, b.locality), cmp.Compare(a.cluster, b.cluster))
}

func (n *name) dimension(i int) string { return [dimensions]string{n.key, n.locality, n.cluster}[i] }

// keep returns n with the dimensions of the bits only.
func (n name) keep(kept uint) name {
	for i, d := range [dimensions]*string{&n.key, &n.locality, &n.cluster} {
		if kept&(1<<i) == 0 {
			*d = ""
		}
	}
	return n
}

// subsets returns the subsets of some bits, larger ones first.
func subsets(of uint) (all []uint) {
	for s := range of + 1 {
		if s&^of == 0 {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b uint) int { return bits.OnesCount(b) - bits.OnesCount(a) })
	return all
}

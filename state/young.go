package state

import (
	"math"
	"time"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// young is what a ready set knows of the RPCs that others have in flight on its members'
// servers. Of the reports it chooses by the youngest only: the fleet has hardly acted on
// those since, and each client has other ones, so clients do not all run to one server.
//
// Members are known by their handles in the ready set's order, suspended or not. Figures
// are whole numbers of a unit, and bounded, so that their sums are exact.
type young struct {
	interval time.Duration
	entries  []youngEntry // by handle
	log      youngList    // of figures, by when they came in
	fresh    youngList    // of members that have not reported yet, by when they came
	silent   []order.Handle

	told   int // members whose last report counts
	sum    figures
	weight order.Sum

	last   time.Duration // when one has reported
	behind bool          // members are silent, and not known to be yet

	// What follows from the sums.
	mean   float64       // others per weight
	window time.Duration // a server gets few RPCs in it
	expiry time.Duration // no figure counts for longer
}

// youngEntry is what is known of a member.
type youngEntry struct {
	figures
	at          time.Duration // when that was known
	weight      float64       // that the sums count; of one that has told
	older, next order.Handle  // in the list that it is in
	index       int32         // in silent
	is          youngState
	logged      bool // it is in the log
}

type youngState uint8

const (
	youngAbsent youngState = iota
	youngFresh
	youngTold
	youngSilent
)

const (
	candidates = 8   // how many figures a choice looks at
	fewRPCs    = 0.2 // of others, that a server gets while a figure is young
	validFor   = 2   // intervals
)

// newYoung returns what is known before the first report. Members are told by enter.
func newYoung(interval time.Duration, o *choiceOrder) *young {
	y := &young{interval: interval, entries: make([]youngEntry, o.Handles()), log: noYoung, fresh: noYoung}
	y.update()
	return y
}

// enter takes up the member h, which is new.
func (y *young) enter(h order.Handle, now time.Duration) {
	if n := int(h) + 1 - len(y.entries); n > 0 {
		y.entries = append(y.entries, make([]youngEntry, n)...)
	}
	if e := &y.entries[h]; e.is == youngAbsent {
		e.is, e.at = youngFresh, now
		y.fresh.push(y.entries, h)
	}
}

// leave forgets the member h.
func (y *young) leave(h order.Handle) {
	y.forget(h)
	y.entries[h] = youngEntry{}
	y.update()
}

// forget takes h out of lists and sums.
func (y *young) forget(h order.Handle) {
	e := &y.entries[h]
	switch e.is {
	case youngFresh:
		y.fresh.remove(y.entries, h)
	case youngTold:
		y.told--
		y.sum.others -= e.others
		y.sum.rate -= e.rate
		y.weight.Add(-e.weight)
		if y.told == 0 {
			y.weight = order.Sum{}
		}
	case youngSilent:
		last := len(y.silent) - 1
		y.silent[e.index] = y.silent[last]
		y.entries[y.silent[last]].index = e.index
		y.silent = y.silent[:last]
	}
	y.unlog(h)
	e.is = youngAbsent
}

func (y *young) unlog(h order.Handle) {
	if e := &y.entries[h]; e.logged {
		y.log.remove(y.entries, h)
		e.logged = false
	}
}

// record puts figures of h into the log.
func (y *young) record(h order.Handle, f figures, now time.Duration) {
	e := &y.entries[h]
	e.figures, e.at, e.logged = f, now, true
	y.log.push(y.entries, h)
}

// report takes up what the server of h, in the order o, says.
func (y *young) report(o *choiceOrder, h order.Handle, f figures, now time.Duration) {
	y.enter(h, now)
	y.forget(h)
	y.record(h, f, now)
	e, weight := &y.entries[h], o.ClassWeight(h)
	e.is, e.weight = youngTold, weight
	y.told++
	y.sum.others += f.others
	y.sum.rate += f.rate
	y.weight.Add(weight)
	y.findSilent(now)
	if len(y.silent) > 0 {
		y.lend(o, now)
	}
	y.last = now
	y.update()
}

// reweigh takes up the weight of h.
func (y *young) reweigh(h order.Handle, weight float64) {
	e := &y.entries[h]
	if e.is == youngTold && e.weight != weight {
		y.weight.Add(-e.weight)
		y.weight.Add(weight) // their difference is rounded
		e.weight = weight
		y.update()
	}
}

func (y *young) snapshot(h order.Handle, now time.Duration) ReportSnapshot {
	e := &y.entries[h]
	overdue := now-e.at >= silentAfter*y.interval
	switch {
	case e.is == youngSilent || e.is != youngAbsent && overdue:
		return ReportSnapshot{Silent: true}
	case e.is == youngTold:
		return ReportSnapshot{Told: true, Others: int64(e.others), OthersRate: e.rate, AgeSeconds: (now - e.at).Seconds()}
	}
	return ReportSnapshot{}
}

// update brings in line what follows from the sums.
func (y *young) update() {
	valid := validFor * y.interval
	y.mean, y.window, y.expiry = 0, valid, valid
	if y.told == 0 {
		return
	}
	y.mean = y.sum.others / y.weight.Value()
	if y.sum.rate > 0 {
		y.window = upTo(valid, fewRPCs*float64(y.told)/y.sum.rate)
		y.expiry = upTo(valid, y.sum.others/y.sum.rate)
	}
}

// upTo returns a number of seconds, at most limit.
func upTo(limit time.Duration, seconds float64) time.Duration {
	return time.Duration(min(float64(limit), seconds*float64(time.Second)))
}

// choose returns the handle to choose in o, whose own choice is exact. An RPC of others is
// taken to cost some units.
func (y *young) choose(o *choiceOrder, exact order.Handle, eligible int, units float64, now time.Duration) order.Handle {
	youngest := y.log.youngest
	if !y.enough(o, eligible, units) {
		return exact
	}
	since := y.since(now)
	load, weight, _ := o.Standing(exact)
	others := y.mean * weight
	if e := &y.entries[exact]; e.logged && e.at >= since {
		others = e.others
	}
	best, low := exact, (others*units+float64(load+1))/weight
	for h, k := youngest, 0; h != order.None && k < candidates; k++ {
		e := &y.entries[h]
		if e.at < since {
			break
		}
		if load, weight, ok := o.Standing(h); ok {
			if s := (e.others*units + float64(load+1)) / weight; s < low {
				best, low = h, s
			}
		}
		h = e.older
	}
	return best
}

// enough reports whether figures say something of use of the members in o: at least half
// of those that are eligible have told, and others have more than next to nothing there.
func (y *young) enough(o *choiceOrder, eligible int, units float64) bool {
	return y.log.youngest != order.None && !y.behind && 2*y.told >= eligible && 4*y.sum.others*units > float64(o.Load())
}

// since returns from when on figures are young: the two youngest are, unless they are
// too old to count.
func (y *young) since(now time.Duration) time.Duration {
	second := time.Duration(math.MaxInt64)
	if h := y.entries[y.log.youngest].older; h != order.None {
		second = y.entries[h].at
	}
	return max(now-y.expiry, min(now-y.window, second))
}

package state

import (
	"math"
	"time"
)

// Bounds of what a report says, so that sums of it are exact: see young.
const (
	mostInFlight = 1 << 31
	mostRate     = 1 << 20 // RPCs per second
	rateUnit     = 1.0 / (1 << 16)
)

// SetReports lets the endpoint set choose by what servers report every interval; see
// [Member.Report]. 0 turns it off, and forgets all reports. The interval is the one
// that servers were asked for: a report counts for two of it, and a server that has not
// reported for three is silent.
func (r *EndpointSet) SetReports(interval time.Duration) {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	if r.closed {
		return
	}
	was := r.reports
	r.reports = max(0, interval)
	for _, v := range r.readySets {
		switch {
		case r.reports == 0:
			v.young = nil
		case was == 0:
			v.young = newYoung(r.reports, &v.order)
		default:
			v.young.interval = r.reports
			v.young.update()
		}
	}
	if was == 0 && r.reports > 0 {
		r.enterAll()
	}
}

// enterAll tells the reports of ready sets which members they have, step by step.
func (r *EndpointSet) enterAll() {
	r.entering++
	defer func() { r.entering-- }()
	steps := r.ledger.inSteps()
	for m := range r.members {
		if v := m.eligibleIn; v != nil && v.young != nil {
			v.young.enter(m.anyHandle(), r.ledger.clock.read())
			steps.did(unitChange)
		}
	}
}

// Report tells what the server of the member's endpoint says of itself now: how many
// RPCs it has in flight, those of this process included, and how many begin there per
// second. A rate below 0, or none that is a number, is not known: the server's RPCs then
// are taken to last as long as this process's own.
//
// The report is the endpoint's: all endpoint sets of the ledger that list it and have
// [EndpointSet.SetReports] use it. A number below 0 is no report. One that is too low to
// be true, since this process has more in flight there for longer than since the report
// before, makes the server a silent one. A member that has left is passed over.
func (m *Member) Report(inFlight int64, rps float64) {
	mu := m.set.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	n := m.endpoint
	if n == nil || inFlight < 0 {
		return
	}
	now := m.set.ledger.clock.read()
	told, honest := n.told(min(inFlight, mostInFlight), rps, now)
	for _, m := range n.members {
		v := m.eligibleIn
		switch {
		case v == nil || v.young == nil:
		case honest:
			v.young.report(&v.order, m.anyHandle(), told, now)
			if p := m.set.plan; p != nil {
				p.told(m)
			}
		default:
			v.young.silence(m.anyHandle(), now)
		}
	}
}

// ReportSnapshot is what the server of a member says, where reports are used. The zero
// value is that of one which may be about to say something.
type ReportSnapshot struct {
	Told       bool    `json:"told"`       // its last report counts
	Silent     bool    `json:"silent"`     // it has not reported for three intervals, or not the truth
	Others     int64   `json:"others"`     // RPCs in flight there that are no leases of this ledger, at the last report
	OthersRate float64 `json:"othersRate"` // of these, those that began per second
	AgeSeconds float64 `json:"ageSeconds"` // of the last report; 0 without one
}

func (m *Member) reportSnapshot() ReportSnapshot {
	v := m.eligibleIn
	if v == nil || v.young == nil {
		return ReportSnapshot{}
	}
	now := v.ledger.clock.now
	s := v.young.snapshot(m.anyHandle(), now)
	if last := m.endpoint.reported; s.Silent && last.known {
		s.AgeSeconds = (now - last.at).Seconds()
	}
	return s
}

// figures is what a report says of the RPCs of others.
type figures struct {
	others float64 // in flight, a whole number
	rate   float64 // per second, in whole rateUnits
}

// reported is what was true of an endpoint here at its last report.
type reported struct {
	at       time.Duration
	picks    uint64
	inFlight int64
	known    bool
}

// told returns what a report of n's server says of others. It is not honest when the
// server must know of more RPCs of this process: those that have begun since the report
// before may not have been there yet.
func (n *endpoint) told(inFlight int64, rps float64, now time.Duration) (_ figures, honest bool) {
	places := int64(n.arriving) // which no RPC has taken up: the server cannot know of them
	was, own := n.reported, n.load.inFlight-places
	picks := n.picks - uint64(places)
	begun := int64(picks - was.picks)
	n.reported = reported{now, picks, own, true}
	passed := max(now-was.at, Tick).Seconds()
	if was.known {
		n.ledger.lives.add(passed*float64(own+was.inFlight)/2, float64(begun))
		honest = inFlight >= own-begun
	} else {
		honest = true
	}
	others, rate := float64(max(0, inFlight-own)), 0.0
	rps = min(rps, mostRate)
	switch {
	case !(rps >= 0):
		rate = others * n.ledger.lives.rate()
	case was.known:
		rate = rps - float64(begun)/passed
	case inFlight > 0:
		rate = rps * others / float64(inFlight)
	}
	rate = math.Round(min(max(rate, 0), mostRate)/rateUnit) * rateUnit
	return figures{others, rate}, honest
}

// lives tells how long RPCs of a ledger last: the time that they were in flight, over
// how many have begun (Little's law).
type lives struct{ time, begun float64 }

// manyLives is after how many RPCs the older ones count less.
const manyLives = 256

func (l *lives) add(time, begun float64) {
	l.time += time
	l.begun += begun
	if l.begun > manyLives {
		l.time /= 2
		l.begun /= 2
	}
}

// rate returns how many RPCs begin per second for each in flight, 0 when that is not
// known.
func (l *lives) rate() float64 {
	if l.time == 0 {
		return 0
	}
	return l.begun / l.time
}

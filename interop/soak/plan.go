package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"
)

// fullEvery is how many rounds there are from one full quiet point to the next.
const fullEvery = 3

// round is what is to happen between two quiet points.
type round struct {
	number int
	full   bool     // the quiet point after it is a full one
	steps  [][]step // by fault stream
	calls  [][]call // by channel
}

// plan draws the rounds, one after another. They follow from the seed, the number of nodes and the length of a round,
// and from nothing that happens while they are played.
type plan struct {
	length  time.Duration
	number  int
	streams []*faultStream
	callers []*caller
}

func newPlan(set settings) *plan {
	p := &plan{length: set.round}
	for _, l := range faultStreams(set.nodes) {
		l.rng = newRNG(set.seed, l.name)
		p.streams = append(p.streams, &l)
	}
	for _, spec := range channelSpecs {
		p.callers = append(p.callers, &caller{spec.rate, newRNG(set.seed, "calls of "+spec.name)})
	}
	return p
}

// next draws the next round.
func (p *plan) next() round {
	r := round{number: p.number, full: p.number%fullEvery == fullEvery-1}
	for _, l := range p.streams {
		r.steps = append(r.steps, l.round(p.length, r.full))
	}
	last := p.number - p.number%fullEvery + fullEvery - 1
	for _, c := range p.callers {
		r.calls = append(r.calls, c.round(p.number, last, p.length))
	}
	p.number++
	return r
}

// call is one RPC to make.
type call struct {
	at       time.Duration // since the round began
	kind     string        // in the table of traffic
	after    time.Duration // when it is cancelled, or its deadline, if its kind has one
	messages int           // of a stream
	size     int           // of a message's payload, in bytes
	until    moment        // when it ends, if its kind is held or abandoned
	read     bool          // an abandoned one is read to its end then, instead of cancelled
}

// moment is a time in the plan.
type moment struct {
	round int
	at    time.Duration
}

// caller draws the RPCs of one channel.
type caller struct {
	rate int // per second, bursts apart
	rng  rng
}

const (
	burstEach = 40 // one in so many RPCs is a burst
	burst     = 10 // of so many
	large     = 64 << 10
)

// round draws the RPCs of a round. None goes on beyond the round last.
func (c *caller) round(number, last int, length time.Duration) []call {
	var calls []call
	for range int(length.Seconds() * float64(c.rate)) {
		times := 1
		at := c.rng.between(0, length)
		if c.rng.oneIn(burstEach) {
			times = burst
		}
		for range times {
			calls = append(calls, c.call(moment{number, at}, last, length))
		}
	}
	slices.SortStableFunc(calls, func(a, b call) int { return int(a.at - b.at) })
	return calls
}

func (c *caller) call(from moment, last int, length time.Duration) call {
	d := c.rng
	drawn := call{
		at:       from.at,
		kind:     traffic[d.draw(trafficShares())].name,
		after:    d.between(0, 20*time.Millisecond),
		messages: d.IntN(8),
		until:    moment{round: from.round + d.IntN(last-from.round+1)},
		read:     d.oneIn(2),
	}
	if d.oneIn(2) {
		drawn.after = d.between(0, 400*time.Millisecond)
	}
	if d.oneIn(8) {
		drawn.size = d.IntN(large)
	}
	least := time.Duration(0)
	if drawn.until.round == from.round {
		least = from.at
	}
	drawn.until.at = d.between(least, length)
	return drawn
}

// step is the begin or the end of a fault.
type step struct {
	at    time.Duration // since the round began
	fault string
	end   bool
	roll  uint32 // what the fault draws its details from
}

// faultStream is faults that happen at one place, one after another. Fault streams run side by side.
type faultStream struct {
	name          string
	faults        []fault
	node, channel int     // whom they happen to; of no account to faults of the other kind
	pause         float64 // between faults, on average, in rounds
	rng           rng
	open          *step // the fault that goes on over the quiet point
}

// faultStreams lists those of a run.
func faultStreams(nodes int) []faultStream {
	var all []faultStream
	for n := range nodes {
		all = append(all,
			faultStream{name: nodeName(n) + " server", faults: serverFaults, node: n, pause: 0.2},
			faultStream{name: nodeName(n) + " network", faults: networkFaults, node: n, pause: 0.25},
			faultStream{name: nodeName(n) + " reports", faults: reportFaults, node: n, pause: 0.3})
	}
	for c, spec := range channelSpecs {
		all = append(all, faultStream{name: spec.name, faults: channelFaults, channel: c, pause: 0.3})
		for n := range nodes {
			all = append(all, faultStream{name: spec.name + "'s " + nodeName(n), faults: listFaults, node: n, channel: c, pause: 0.6})
		}
	}
	return all
}

func nodeName(n int) string { return fmt.Sprintf("n%d", n) }

// round draws its faults of a round. Before a full quiet point all of them end.
func (l *faultStream) round(length time.Duration, full bool) []step {
	var steps []step
	at := time.Duration(0)
	if l.open != nil {
		at = l.rng.between(0, length/2)
		steps = append(steps, step{at: at, fault: l.open.fault, end: true, roll: l.open.roll})
		l.open = nil
	}
	pause := time.Duration(l.pause * float64(length))
	for {
		at += l.rng.between(0, 2*pause)
		f := l.faults[l.rng.draw(sharesOf(l.faults))]
		begin := step{at: at, fault: f.name, roll: l.rng.Uint32()}
		lasts := l.rng.between(length/20, length/3)
		over := l.rng.oneIn(4)
		if at >= length {
			return steps
		}
		switch {
		case f.end == nil:
			steps = append(steps, begin)
		case f.over && over && !full:
			l.open = &begin
			return append(steps, begin)
		default:
			at = min(at+lasts, length)
			steps = append(steps, begin, step{at: at, fault: f.name, end: true, roll: begin.roll})
		}
	}
}

func sharesOf(faults []fault) []int {
	shares := make([]int, len(faults))
	for i, f := range faults {
		shares[i] = f.share
	}
	return shares
}

// rng is the source of chance of one component of the plan. Each has its own, so that one that draws more or less does
// not change what the others draw.
type rng struct{ *rand.Rand }

func newRNG(seed uint64, component string) rng {
	h := fnv.New64a()
	h.Write([]byte(component))
	return rng{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// between draws a duration from least to most.
func (d rng) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(d.Int64N(int64(most-least)+1))
}

// oneIn is true once in n times.
func (d rng) oneIn(n int) bool { return d.IntN(n) == 0 }

// draw draws an index of shares, each as often as its share says.
func (d rng) draw(shares []int) int {
	total := 0
	for _, s := range shares {
		total += s
	}
	left := d.IntN(total)
	for i, s := range shares {
		if left < s {
			return i
		}
		left -= s
	}
	return len(shares) - 1
}

package main

import "time"

// fullEvery is how many rounds there are from one full quiet point to the next.
const fullEvery = 3

// round is what is to happen between two quiet points.
type round struct {
	number int
	full   bool     // the quiet point after it is a full one
	steps  [][]step // by lane
	calls  [][]call // by channel
}

// plan draws the rounds, one after another. They follow from the seed, the number of nodes and the length of a round,
// and from nothing that happens while they are played.
type plan struct {
	length  time.Duration
	number  int
	lanes   []*lane
	callers []*caller
}

func newPlan(set settings) *plan {
	p := &plan{length: set.round}
	for _, l := range lanes(set.nodes) {
		l.dice = newDice(set.seed, l.name)
		p.lanes = append(p.lanes, &l)
	}
	for _, spec := range channelSpecs {
		p.callers = append(p.callers, &caller{spec.rate, newDice(set.seed, "calls of "+spec.name)})
	}
	return p
}

// next draws the next round.
func (p *plan) next() round {
	r := round{number: p.number, full: p.number%fullEvery == fullEvery-1}
	for _, l := range p.lanes {
		r.steps = append(r.steps, l.round(p.length, r.full))
	}
	last := p.number - p.number%fullEvery + fullEvery - 1
	for _, c := range p.callers {
		r.calls = append(r.calls, c.round(p.number, last, p.length))
	}
	p.number++
	return r
}

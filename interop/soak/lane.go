package main

import (
	"fmt"
	"time"
)

// step is the begin or the end of a fault.
type step struct {
	at    time.Duration // since the round began
	fault string
	end   bool
	roll  uint32 // what the fault draws its details from
}

// lane is one place where faults happen, one after another. Lanes run side by side.
type lane struct {
	name          string
	faults        []fault
	node, channel int     // whom they happen to; of no account to faults of the other kind
	pause         float64 // between faults, on average, in rounds
	dice          dice
	open          *step // the fault that goes on over the quiet point
}

// lanes lists the lanes of a run.
func lanes(nodes int) []lane {
	var all []lane
	for n := range nodes {
		all = append(all,
			lane{name: nodeName(n) + " server", faults: serverFaults, node: n, pause: 0.2},
			lane{name: nodeName(n) + " network", faults: networkFaults, node: n, pause: 0.25})
	}
	for c, spec := range channelSpecs {
		all = append(all, lane{name: spec.name, faults: channelFaults, channel: c, pause: 0.3})
		for n := range nodes {
			all = append(all, lane{name: spec.name + "'s " + nodeName(n), faults: listFaults, node: n, channel: c, pause: 0.6})
		}
	}
	return all
}

func nodeName(n int) string { return fmt.Sprintf("n%d", n) }

// round draws the lane's faults of a round. Before a full quiet point all of them end.
func (l *lane) round(length time.Duration, full bool) []step {
	var steps []step
	at := time.Duration(0)
	if l.open != nil {
		at = l.dice.between(0, length/2)
		steps = append(steps, step{at: at, fault: l.open.fault, end: true, roll: l.open.roll})
		l.open = nil
	}
	pause := time.Duration(l.pause * float64(length))
	for {
		at += l.dice.between(0, 2*pause)
		f := l.faults[l.dice.draw(sharesOf(l.faults))]
		begin := step{at: at, fault: f.name, roll: l.dice.Uint32()}
		lasts := l.dice.between(length/20, length/3)
		over := l.dice.oneIn(4)
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

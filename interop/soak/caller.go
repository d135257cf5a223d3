package main

import (
	"slices"
	"time"
)

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
	dice dice
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
		at := c.dice.between(0, length)
		if c.dice.oneIn(burstEach) {
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
	d := c.dice
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

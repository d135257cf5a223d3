package main

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// dice is the source of chance of one component of the plan. Each has its own, so that one that draws more or less does
// not change what the others draw.
type dice struct{ *rand.Rand }

func newDice(seed uint64, component string) dice {
	h := fnv.New64a()
	h.Write([]byte(component))
	return dice{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// between draws a duration from least to most.
func (d dice) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(d.Int64N(int64(most-least)+1))
}

// oneIn is true once in n times.
func (d dice) oneIn(n int) bool { return d.IntN(n) == 0 }

// draw draws an index of shares, each as often as its share says.
func (d dice) draw(shares []int) int {
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

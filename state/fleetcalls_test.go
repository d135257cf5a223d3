package state_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// meanWork is how long a server works at a call, in seconds, on average. It serves one
// after another.
const meanWork = 0.01

// call has a client make a call, and the next one at a time that does not depend on it.
func (f *fleetSim) call(c *fleetClient) {
	mean := float64(len(f.clients)) / (f.calls * float64(f.fleetConfig.servers))
	next := f.now + f.ExpFloat64()*mean
	if f.now > 0 {
		f.open(c)
	}
	f.at(next, func() { f.call(c) })
}

// queue returns how long a call is at a server which works so long at it.
func (f *fleetSim) queue(s *fleetServer, work float64) float64 {
	s.idle = max(s.idle, f.now) + work
	if f.measure {
		f.took = append(f.took, s.idle-f.now)
	}
	return s.idle - f.now
}

// byCapacity is weighted round robin of many clients, at its best: the weights are what
// the servers can do.
var byCapacity = simpleRule(func(s *simple) int {
	sum := 0.0
	for i := range s.f.servers {
		sum += s.f.speed(i)
	}
	x := s.f.Float64() * sum
	for i := range s.f.servers {
		if x -= s.f.speed(i); x < 0 {
			return i
		}
	}
	return s.draw()
})

func (f *fleetSim) speed(i int) float64 {
	if f.slow == nil {
		return 1
	}
	return 1 / f.slow(i)
}

// p99 returns how long all but a hundredth of the calls take, in seconds, at most. The
// servers are at 0.85 of what they can do.
func p99(c fleetConfig, seed uint64) float64 {
	c.streams = 0
	c.life = func(r *rand.Rand) float64 { return r.ExpFloat64() * meanWork }
	speed := 0.0
	for i := range c.servers {
		speed += (&fleetSim{fleetConfig: c}).speed(i)
	}
	c.calls = 0.85 / meanWork * speed / float64(c.servers)
	f := newFleet(c, seed)
	settled, over := 1.0, 5.0
	if *fleetTable {
		settled, over = 5, 20
	}
	f.run(settled, nil)
	f.measure = true
	f.run(over, nil)
	f.close()
	slices.Sort(f.took)
	return f.took[len(f.took)*99/100]
}

// Short calls that queue at their servers take less time by reports that are young
// against the time that a call takes, and none take longer by others.
func TestFleetsCallsAreSoonDone(t *testing.T) {
	servers, intervals, slack := 10, []float64{0.1}, 0.1
	if *fleetTable {
		servers, intervals, slack = 100, fleetIntervals, 0
	}
	for _, k := range []struct {
		name string
		slow func(i int) float64
		most map[float64]float64 // of the time without reports, by interval
	}{
		{"equal servers", nil, map[float64]float64{0.1: 0.8, 1: 0.86}},
		{"2:1, unknown", func(i int) float64 { return float64(1 + i%2) }, map[float64]float64{0.1: 0.3, 1: 0.3}},
	} {
		t.Run(k.name, func(t *testing.T) {
			requireMost(t, func(seed uint64) (within []figure) {
				figures := func(interval float64, rule func(*fleetSim, *fleetClient) fleetRule) float64 {
					return medians(seed, func(seed uint64) []float64 {
						c := simOf(servers, interval, rule)
						c.slow = k.slow
						return []float64{p99(c, seed)}
					})[0]
				}
				alone := figures(0, exactLocal)
				row(t, "least_conn alone", []float64{alone})
				row(t, "weighted round robin", []float64{figures(0, byCapacity)})
				row(t, "three probes", []float64{figures(0, threeProbes)})
				for _, interval := range intervals {
					with := figures(interval, withReports)
					name := fmt.Sprintf("reports each %v s", interval)
					row(t, name, []float64{with, with / alone})
					most, ok := k.most[interval]
					if !ok {
						most = 1.02
					}
					within = append(within, figure{name, with / alone, most + slack})
				}
				return within
			})
		})
	}
}

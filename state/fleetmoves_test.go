package state_test

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// movingFleets returns a fleet of one stream for each process, twenty for each server, of
// which a part has none at first, and the intervals to look at it by.
func movingFleets(t *testing.T, empty float64) (movingConfig, []time.Duration) {
	c, intervals := movingConfig{processes: 200, servers: 10}, []time.Duration{time.Second}
	if *fleetTable {
		c, intervals = movingConfig{processes: 1000, servers: 50}, []time.Duration{time.Second, 10 * time.Second, 30 * time.Second}
		t.Log("cv of the servers' loads, moves over the fewest, peak of a server without streams over the mean, moves of a stream at most")
	}
	c.each, c.first = 1, c.servers-int(empty*float64(c.servers)+0.5)
	return c, intervals
}

// requireMovingFleet requires that a fleet's figures are within their limits.
func requireMovingFleet(t *testing.T, c movingConfig, figures func(f *movingFleet) []figure) {
	t.Helper()
	requireMost(t, func(uint64) (got []figure) {
		inTime(t, func(e *env) {
			f := newMovingFleet(e, c)
			defer f.end()
			got = figures(f)
		})
		return got
	})
}

// levels has a fleet's streams move for some intervals. It returns the cv after five and
// in the end, how many moved over the fewest that have to, the peak of a server that had
// none, and how often a stream moved at most.
func (f *movingFleet) levels(intervals int) (soon, cv, moves, peak, most float64) {
	f.begin()
	f.run(3, nil)
	f.open()
	before, _ := f.told()
	fewest := f.fewest()
	for i := range intervals {
		f.run(1, nil)
		peak = max(peak, f.most(f.first))
		if i == 4 {
			soon = f.cv(nil)
		}
	}
	told, most := f.told()
	f.check()
	return soon, f.cv(nil), float64(told-before) / fewest, peak, most
}

// A fleet of processes of one stream becomes level by reports, though each process is by
// itself, and none has anything to react to: servers that have had nothing get their part,
// and not beyond that, by as few moves as there can be.
func TestMovesMakeFleetLevel(t *testing.T) {
	t.Parallel()
	c, intervals := movingFleets(t, 0.5)
	slack := 0.05 // in small fleets there are fewer reports to choose among
	if *fleetTable {
		slack = 0
	}
	for _, c.interval = range intervals {
		requireMovingFleet(t, c, func(f *movingFleet) []figure {
			soon, cv, moves, peak, most := f.levels(15)
			row(f.T, fmt.Sprintf("half empty, interval %v", c.interval), []float64{soon, cv, moves, peak, most})
			return []figure{
				{"cv soon", soon, 0.08 + 2*slack}, {"cv", cv, 0.08 + slack}, {"moves over the fewest", moves, 1.2},
				{"peak", peak, 1.15 + slack}, {"moves of a stream", most, 3},
			}
		})
	}
}

// A server that joins is filled, too, though none of the others has a whole stream too
// many, and half of a fleet that joins is not filled twice.
func TestMovesFillServersThatJoin(t *testing.T) {
	t.Parallel()
	parts := []float64{0.02, 0.5}
	if *fleetTable {
		parts = []float64{0.02, 0.1, 0.5}
	}
	for _, empty := range parts {
		c, intervals := movingFleets(t, empty)
		if c.joins = true; c.first == c.servers {
			c.processes, c.servers, c.first = 150, 15, 14
		}
		for _, c.interval = range intervals {
			requireMovingFleet(t, c, func(f *movingFleet) []figure {
				soon, cv, moves, peak, most := f.levels(max(15, int(30*time.Second/c.interval)))
				row(f.T, fmt.Sprintf("%d of %d join, interval %v", c.servers-c.first, c.servers, c.interval), []float64{soon, cv, moves, peak, most})
				joining := float64(c.servers-c.first) / float64(c.servers)
				chance := 4 / math.Sqrt(float64(c.processes)*joining) // four standard deviations of how many are drawn
				two := 2 * float64(c.servers) / float64(c.processes)  // streams that come by chance
				lack := max(0.05, 0.9-chance) - f.most(f.first)
				return []figure{
					{"cv", cv, 0.1 + chance*math.Sqrt(joining)}, {"what those that join lack", lack, 0}, {"moves over the fewest", moves, 1.2 + chance},
					{"peak", peak, 1.25 + two}, {"moves of a stream", most, 4},
				}
			})
		}
	}
}

// In a level fleet nobody moves.
func TestLevelFleetStays(t *testing.T) {
	t.Parallel()
	c, intervals := movingFleets(t, 0)
	long, slack := 30, 0.05 // in small fleets there are fewer reports to choose among
	if *fleetTable {
		long, slack = 100, 0
	}
	for _, c.interval = range intervals {
		requireMovingFleet(t, c, func(f *movingFleet) []figure {
			f.begin()
			f.run(10, nil) // what the first choices leave to do
			before, _ := f.told()
			f.run(long, nil)
			told, _ := f.told()
			row(f.T, fmt.Sprintf("level, interval %v", c.interval), []float64{f.cv(nil), float64(told - before)})
			f.check()
			return []figure{{"moves", float64(told - before), float64(c.processes / 100)}, {"cv", f.cv(nil), 0.08 + slack}}
		})
	}
}

// Where two of five servers are silent, and one says that it has nothing to do, those that
// tell become as level as they can: the liar gets no more than being a candidate of each
// stream that moves makes it.
func TestMovesBearSilenceAndLies(t *testing.T) {
	t.Parallel()
	c, intervals := movingFleets(t, 0.5)
	if !*fleetTable {
		c.processes, c.servers, c.first = 200, 20, 10
	}
	c.silent = 0.4
	liar := c.servers - 1
	c.tells = func(server int, inFlight int64) int64 {
		if server == liar {
			return 0
		}
		return inFlight
	}
	for _, c.interval = range intervals {
		requireMovingFleet(t, c, func(f *movingFleet) []figure {
			_, cv, moves, peak, most := f.levels(12)
			tell := func() float64 { return f.cv(func(i int) bool { return i != liar && i%10 >= 4 }) }
			row(f.T, fmt.Sprintf("40 %% silent, one lies, interval %v", c.interval), []float64{cv, tell(), moves, peak, most})
			figures := []figure{
				{"cv of those that tell", tell(), 0.15}, {"moves over the fewest", moves, 1.2}, {"peak", peak, 9}, {"moves of a stream", most, 3},
			}
			f.run(12, nil) // some still go to the liar
			before, _ := f.told()
			f.run(12, nil)
			told, _ := f.told()
			row(f.T, "later", []float64{float64(told - before), f.most(f.first)})
			return append(figures, figure{"moves later", float64(told - before), float64(c.processes / 20)})
		})
	}
}

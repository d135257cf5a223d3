package state_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	for _, c.interval = range intervals {
		inTime(t, func(e *env) {
			f := newMovingFleet(e, c)
			defer f.end()
			soon, cv, moves, peak, most := f.levels(15)
			row(e.T, fmt.Sprintf("half empty, interval %v", c.interval), []float64{soon, cv, moves, peak, most})
			slack := 0.05 // in small fleets there are fewer reports to choose among
			if *fleetTable {
				slack = 0
			}
			require.LessOrEqual(t, soon, 0.08+2*slack)
			require.LessOrEqual(t, cv, 0.08+slack)
			require.LessOrEqual(t, moves, 1.2)
			require.LessOrEqual(t, peak, 1.15+slack)
			require.LessOrEqual(t, most, 3.0)
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
			inTime(t, func(e *env) {
				f := newMovingFleet(e, c)
				defer f.end()
				soon, cv, moves, peak, most := f.levels(max(15, int(30*time.Second/c.interval)))
				row(e.T, fmt.Sprintf("%d of %d join, interval %v", c.servers-c.first, c.servers, c.interval), []float64{soon, cv, moves, peak, most})
				joining := float64(c.servers-c.first) / float64(c.servers)
				chance := 4 / math.Sqrt(float64(c.processes)*joining) // four standard deviations of how many are drawn
				require.LessOrEqual(t, cv, 0.1+chance*math.Sqrt(joining))
				require.GreaterOrEqual(t, f.most(f.first), max(0.05, 0.9-chance))
				require.LessOrEqual(t, moves, 1.2+chance)
				two := 2 * float64(c.servers) / float64(c.processes) // streams that come by chance
				require.LessOrEqual(t, peak, 1.25+two)
				require.LessOrEqual(t, most, 4.0)
			})
		}
	}
}

// In a level fleet nobody moves.
func TestLevelFleetStays(t *testing.T) {
	t.Parallel()
	c, intervals := movingFleets(t, 0)
	long := 30
	if *fleetTable {
		long = 100
	}
	for _, c.interval = range intervals {
		inTime(t, func(e *env) {
			f := newMovingFleet(e, c)
			defer f.end()
			f.begin()
			f.run(10, nil) // what the first choices leave to do
			before, _ := f.told()
			f.run(long, nil)
			told, _ := f.told()
			row(e.T, fmt.Sprintf("level, interval %v", c.interval), []float64{f.cv(nil), float64(told - before)})
			require.LessOrEqual(t, told-before, c.processes/100)
			require.LessOrEqual(t, f.cv(nil), 0.08)
			f.check()
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
		inTime(t, func(e *env) {
			f := newMovingFleet(e, c)
			defer f.end()
			_, cv, moves, peak, most := f.levels(12)
			tell := f.cv(func(i int) bool { return i != liar && i%10 >= 4 })
			row(e.T, fmt.Sprintf("40 %% silent, one lies, interval %v", c.interval), []float64{cv, tell, moves, peak, most})
			require.LessOrEqual(t, tell, 0.15)
			require.LessOrEqual(t, moves, 1.2)
			require.LessOrEqual(t, peak, 9.0)
			require.LessOrEqual(t, most, 3.0)
			before, _ := f.told()
			f.run(20, nil)
			told, _ := f.told()
			row(e.T, "later", []float64{float64(told - before), f.most(f.first)})
			require.LessOrEqual(t, told-before, c.processes/20)
		})
	}
}

package state_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

type fleetPolicy struct {
	name    string
	reports bool
	rule    func(*fleetSim, *fleetClient) fleetRule
}

var fleetPolicies = []fleetPolicy{
	{"all known at once", false, bound},
	{"round robin", false, roundRobin},
	{"two choices", false, twoLocal},
	{"least_conn alone", false, exactLocal},
	{"three probes", false, threeProbes},
	{"LSQ", true, lsq},
	{"two by reports", true, twoReports},
	{"four by reports", true, fourReports},
	{"water filling", true, waterFilling},
	{"least_conn", true, withReports},
}

var fleetIntervals = []float64{0.1, 1, 5, 10, 30}

// simOf returns a fleet with two streams for each client, ten clients for each server.
func simOf(servers int, interval float64, rule func(*fleetSim, *fleetClient) fleetRule) fleetConfig {
	return fleetConfig{clients: 10 * servers, streams: 2, servers: servers, interval: interval, rule: rule}
}

// cvOf returns the coefficient of variation of a fleet's loads, after some lives.
func cvOf(c fleetConfig, seed uint64) float64 {
	f := newFleet(c, seed)
	defer f.close()
	lives := 2.0
	if *fleetTable {
		lives = 4
	}
	f.run(lives*meanLife, nil)
	f.run(2*lives*meanLife, f.sample)
	return f.cv()
}

// newcomer returns after how many seconds a server that comes, or comes back, has nine
// tenths of the mean load, its peak in three lives over the mean, and that of other servers,
// on average.
func newcomer(c fleetConfig, restart bool, seed uint64) (rose, peak, usual float64) {
	f := newFleet(c, seed)
	defer f.close()
	f.run(4*meanLife, nil)
	i := 0
	if restart {
		f.stop(i)
		f.run(f.now+5, nil)
		f.start(i)
	} else {
		i = f.addServer()
	}
	began := f.now
	rose = math.Inf(1)
	peaks := make([]float64, len(f.servers))
	f.run(began+3*meanLife, func() {
		mean := f.mean()
		for k, s := range f.servers {
			peaks[k] = max(peaks[k], float64(s.load)/mean)
		}
		if float64(f.servers[i].load) >= 0.9*mean && math.IsInf(rose, 1) {
			rose = f.now - began
		}
	})
	for k, p := range peaks {
		if k != i {
			usual += p / float64(len(peaks)-1)
		}
	}
	return rose, peaks[i], usual
}

// The loads of a fleet are even, however rarely servers report: more than by any rule
// that has been published.
func TestFleetIsEven(t *testing.T) {
	servers, intervals := 30, []float64{10}
	if *fleetTable {
		servers, intervals = 100, fleetIntervals
	}
	t.Logf("cv of the servers' loads by interval, in s: %v", intervals)
	figures := map[string][]float64{}
	for _, p := range fleetPolicies {
		at := intervals
		if !p.reports {
			at = at[:1]
		}
		figures[p.name] = medians(1, func(seed uint64) (cvs []float64) {
			for _, interval := range at {
				cvs = append(cvs, cvOf(simOf(servers, interval, p.rule), seed))
			}
			return cvs
		})
		row(t, p.name, figures[p.name])
	}
	if !*fleetTable { // the fewer servers, the older are the youngest reports
		require.LessOrEqual(t, figures["least_conn"][0], 0.9*figures["four by reports"][0])
		return
	}
	for i, interval := range intervals {
		ours, best := figures["least_conn"][i], 1.0
		for _, p := range fleetPolicies {
			if p.reports && p.name != "least_conn" {
				best = min(best, figures[p.name][i])
			}
		}
		if interval <= 10 {
			require.LessOrEqual(t, ours, 0.05)
		}
		require.LessOrEqual(t, ours, 0.09)
		if interval >= 10 {
			require.LessOrEqual(t, ours, 0.5*best)
		}
	}
}

// A server that comes, or comes back, is filled in time, and no fuller than others
// are at times.
func TestFleetFillsServersThatCome(t *testing.T) {
	servers, intervals, peak := 30, []float64{10}, 1.5
	if *fleetTable {
		servers, intervals, peak = 100, []float64{0.1, 1, 10, 30}, 1.15
		t.Log("seconds until nine tenths of the mean; peak over the mean; that of others")
	}
	for _, restart := range []bool{false, true} {
		for _, interval := range intervals {
			requireMost(t, func(seed uint64) []figure {
				ms := medians(seed, func(seed uint64) []float64 {
					rose, peak, usual := newcomer(simOf(servers, interval, withReports), restart, seed)
					return []float64{rose, peak, usual}
				})
				row(t, fmt.Sprintf("back: %t, interval %v s", restart, interval), ms)
				soon := 3 * meanLife
				if *fleetTable {
					soon = max(2*interval, meanLife/5)
				}
				return []figure{{"seconds until it is filled", ms[0], soon}, {"peak", ms[1], max(peak, ms[2]+0.05)}}
			})
		}
	}
}

// Reports make loads more even in fleets of any kind.
func TestFleetsOfManyKindsAreEven(t *testing.T) {
	servers, slack := 20, 0.2
	if *fleetTable {
		servers, slack = 100, 0
	}
	halves := func(i int) int { return 1 + i%2 }
	for _, k := range []struct {
		name string
		most float64 // of the cv without reports, where servers without streams do not count
		none float64 // servers that get no stream
		set  func(c *fleetConfig)
	}{
		{"heavy tails", 0.6, 0, func(c *fleetConfig) { c.life = heavy }},
		{"foreign traffic", 0.6, 0, func(c *fleetConfig) { c.foreign = 10 * c.servers }},
		{"half round robin", 0.6, 0, func(c *fleetConfig) { c.rule = mixed(c.rule, roundRobin) }},
		{"30 % lost, 1 s late", 0.6, 0, func(c *fleetConfig) { c.lost, c.late = 0.3, 1 }},
		{"30 % silent", 0.75, 0, func(c *fleetConfig) { c.silent = 0.3 }},
		{"capacities 2:1, known", 0.4, 0, func(c *fleetConfig) { c.capacity = halves }},
		{"capacities 2:1, unknown", 0.3, 0, func(c *fleetConfig) { c.slow = func(i int) float64 { return float64(halves(i)) } }},
		{"a server says very much", 0.6, 1, func(c *fleetConfig) {
			c.lie = func(i int, inFlight int64, rps float64) (int64, float64) {
				if i == 0 {
					inFlight, rps = 1<<62, 1e300
				}
				return inFlight, rps
			}
		}},
		{"rates are not known", 0.6, 0, func(c *fleetConfig) {
			c.lie = func(i int, inFlight int64, rps float64) (int64, float64) { return inFlight, -1 }
		}},
	} {
		t.Run(k.name, func(t *testing.T) {
			cv := func(rule func(*fleetSim, *fleetClient) fleetRule, interval float64, seed uint64) float64 {
				c := simOf(servers, interval, rule)
				k.set(&c)
				return cvOf(c, seed)
			}
			requireMost(t, func(seed uint64) []figure {
				ms := medians(seed, func(seed uint64) []float64 {
					alone, with := cv(exactLocal, 0, seed), cv(withReports, 10, seed)
					return []float64{alone, with, with / alone}
				})
				row(t, k.name, ms)
				return []figure{{"cv", ms[1], math.Hypot((k.most+slack)*ms[0], math.Sqrt(k.none/(float64(servers)-k.none)))}}
			})
		})
	}
}

// A server that says to have nothing to do gets no more than being a candidate all the
// time, for each of its reports, makes it.
func TestFleetsBearLiars(t *testing.T) {
	c := simOf(30, 10, withReports)
	c.lie = func(i int, inFlight int64, rps float64) (int64, float64) {
		if i == 0 {
			inFlight = 0
		}
		return inFlight, rps
	}
	f := newFleet(c, 1)
	defer f.close()
	f.run(4*meanLife, nil)
	sum, n := 0.0, 0.0
	f.run(8*meanLife, func() {
		sum += float64(f.servers[0].load) / f.mean()
		n++
	})
	t.Logf("the liar has %.2f times the mean load", sum/n)
	require.LessOrEqual(t, sum/n, 9.0)
}

package leastconnbalancer_test

import "fmt"

// Levels of RPCs in flight.
const (
	benchIdle   = "0"
	benchHalf   = "n2" // n/2
	benchDouble = "2n"
)

// benchCase is one sub-benchmark of BenchmarkPick.
type benchCase struct {
	policy   benchPolicy
	weights  string
	n        int // endpoints
	inFlight string
	procs    int
	views    int // balancers on the same resource key; one of them is picked from
	gogc     int
}

func (c benchCase) String() string {
	return fmt.Sprintf("policy=%s/weights=%s/n=%d/inflight=%s/procs=%d/views=%d/gogc=%d",
		c.policy.label, c.weights, c.n, c.inFlight, c.procs, c.views, c.gogc)
}

// held is the number of RPCs in flight.
func (c benchCase) held() int {
	switch c.inFlight {
	case benchHalf:
		return c.n / 2
	case benchDouble:
		return 2 * c.n
	}
	return 0
}

// benchCases returns the wanted cases, those with the same channels together.
func benchCases() []benchCase {
	var cases []benchCase
	add := func(c benchCase) {
		for _, c.inFlight = range []string{benchIdle, benchHalf, benchDouble} {
			for _, c.procs = range []int{1, 2} {
				for _, c.gogc = range []int{100, 1000} {
					if c.wanted() {
						cases = append(cases, c)
					}
				}
			}
		}
	}
	for _, policy := range []benchPolicy{benchLeastConn, benchRoundRobin, benchLeastRequest2, benchLeastRequest10} {
		for _, weights := range []string{benchEqualWeights, benchFourWeights, benchDistinctWeights} {
			for _, n := range []int{1, 3, 10, 100, 1000, 10000} {
				for _, views := range []int{1, 4, 50} {
					add(benchCase{policy: policy, weights: weights, n: n, views: views})
				}
			}
		}
	}
	return cases
}

// wanted keeps what the table of internal/benchtable compares: each policy at each n half full on one proc, and from
// there one step in one direction at a time.
func (c benchCase) wanted() bool {
	common := c.inFlight == benchHalf && c.procs == 1 && c.gogc == 100
	switch {
	case c.views != 1:
		fits := c.n == 100 || c.n == 1000 && c.views == 4
		return c.policy == benchLeastConn && c.weights == benchEqualWeights && fits && common
	case c.weights != benchEqualWeights:
		return c.policy == benchLeastConn && c.n >= 1000 && c.inFlight != benchIdle && c.procs == 1 && c.gogc == 100
	case c.policy == benchLeastRequest10:
		return common
	case c.inFlight == benchHalf && c.procs == 1:
		return true
	default:
		size := c.n == 10 || c.n == 1000 || c.n == 10000
		return size && c.gogc == 100 && (c.inFlight == benchHalf || c.procs == 1)
	}
}

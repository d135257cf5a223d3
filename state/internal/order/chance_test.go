package order

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The first choice among classes is drawn by weight, also where they have joined one by
// one and where values are many. The bounds are seven standard deviations.
func TestFirstChoiceIsDrawnByWeight(t *testing.T) {
	const trials = 3000
	for _, weights := range [][]float64{{3, 1}, {1, 1, 1, 1, 2}, {5, 3, 1, 1}, {1, 9}} {
		t.Run(fmt.Sprint(weights), func(t *testing.T) {
			got, sum := make([]int, len(weights)), 0.0
			for _, w := range weights {
				sum += w
			}
			for range trials {
				got[newPool(weights...).pick()]++
			}
			for i, w := range weights {
				p := w / sum
				require.InDelta(t, p*trials, got[i], 7*math.Sqrt(trials*p*(1-p)), "%v", got)
			}
		})
	}
}

// unevenness returns how far loads are from their weighted shares, over how far the loads
// are on average that as many independent draws by weight leave. (The squares are those of
// Pearson's chi-squared test.)
func unevenness(loads []int, weights []float64) float64 {
	load, weight, sum := 0.0, 0.0, 0.0
	for i, n := range loads {
		load += float64(n)
		weight += weights[i]
	}
	for i, n := range loads {
		share := load * weights[i] / weight
		sum += (float64(n) - share) * (float64(n) - share) / share
	}
	return math.Sqrt(sum / float64(len(loads)-1))
}

// Clients with few choices each, which know nothing of each other, load a hundred servers
// as evenly as weighted random choice does. So many fleets are looked at that the limit is
// more than six standard deviations away.
func TestFleetIsAsEvenAsWeightedChance(t *testing.T) {
	const clients, streams, fleets = 500, 3, 30
	for _, name := range []string{"1 to 2, all different", "1 to 10", "two classes of a hundred"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			weights := everyday[name]
			if weights == nil {
				weights = ramp(100, func(i int) float64 { return float64(1 + i%2) })
			}
			var squares [streams]float64
			for range fleets {
				loads := make([]int, len(weights))
				pools := make([]*pool, clients)
				for s := range streams {
					for i := range pools {
						if s == 0 {
							pools[i] = newPool(weights...)
						}
						loads[pools[i].pick()]++
					}
					squares[s] += math.Pow(unevenness(loads, weights), 2) / fleets
				}
			}
			for s := range streams {
				got := math.Sqrt(squares[s])
				t.Logf("%d streams: %.3f of what chance leaves", s+1, got)
				require.Less(t, got, 1.1, "%d streams", s+1)
			}
		})
	}
}

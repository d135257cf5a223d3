package state_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// joinedFleet has processes with some streams each, on endpoints that are listed first and
// others that join. It returns how many streams each of them has in the end, and how
// many were asked.
func joinedFleet(t *testing.T, processes, each int, first, joining []string, weight uint32) (map[string]int, int) {
	t.Helper()
	total, told := map[string]int{}, 0
	inTime(t, func(e *env) {
		var all []*streams
		for range processes {
			p := newEnvOn(e.T, state.Open(""))
			p.add(first...)
			s := p.streams()
			defer s.end()
			p.endpointSet.SetRebalance(state.Rebalance{PerSecond: 10})
			s.begin(each)
			all = append(all, s)
		}
		for _, s := range all {
			s.list(joining...)
			for _, a := range joining {
				s.set(a, weight)
			}
		}
		pass(25 * time.Second) // settle, and the time in which processes draw
		for _, s := range all {
			asked := s.told()
			require.LessOrEqual(t, asked, each)
			told += asked
			require.NoError(t, s.ledger.Check())
			for _, addr := range append(first, joining...) {
				total[addr] += s.at(addr)
			}
		}
	})
	return total, told
}

// A fleet of processes of few streams becomes level: within four standard deviations.
func TestFleetBecomesLevel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		processes, each int
		joining         []string
		weight          uint32
		want            float64 // on each that joins
	}{
		"one stream each":    {240, 1, []string{"d"}, 1, 60},
		"three streams each": {80, 3, []string{"d"}, 1, 60},
		"five streams each":  {80, 5, []string{"d"}, 1, 100},
		"three join":         {240, 1, []string{"d", "e", "f"}, 1, 40},
		"a heavy one joins":  {240, 1, []string{"d"}, 3, 120},
		"seven, two join":    {50, 7, []string{"d", "e"}, 1, 70},
	} {
		t.Run(name, func(t *testing.T) {
			n := float64(tc.processes * tc.each)
			rest := (n - tc.want*float64(len(tc.joining))) / 3
			requireMost(t, func(uint64) (figures []figure) {
				on, told := joinedFleet(t, tc.processes, tc.each, []string{"a", "b", "c"}, tc.joining, tc.weight)
				for _, a := range tc.joining {
					figures = append(figures, figure{"off on " + a, math.Abs(tc.want - float64(on[a])), 4 * math.Sqrt(tc.want*(1-tc.want/n))})
				}
				for _, a := range []string{"a", "b", "c"} {
					figures = append(figures, figure{"off on " + a, math.Abs(rest - float64(on[a])), 4 * math.Sqrt(rest)})
				}
				require.Equal(t, int(n)-on["a"]-on["b"]-on["c"], told, "each stream moves once")
				return figures
			})
		})
	}
}

// Where whole RPCs go up, chance moves none.
func TestNoDrawWhereLevel(t *testing.T) {
	on, told := joinedFleet(t, 20, 8, []string{"a", "b", "c"}, []string{"d"}, 1)
	require.Equal(t, 40, on["d"])
	require.Equal(t, 40, told)
}

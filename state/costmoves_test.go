package state_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// naiveUnits is a planner that sees what each stream costs, by endpoint.
type naiveUnits map[string][]int64

func (n naiveUnits) sum(addr string) (sum int64) {
	for _, units := range n[addr] {
		sum += units
	}
	return sum
}

// moves returns how many streams move: from the most to the fewest units, the one that makes
// them as level as one can, until the difference is within the largest cost.
func (n naiveUnits) moves() int {
	largest := int64(1)
	for _, all := range n {
		largest = max(largest, slices.Max(append(all, 1)))
	}
	for total := 0; ; total++ {
		addrs := slices.SortedFunc(maps.Keys(n), func(a, b string) int { return int(n.sum(a) - n.sum(b)) })
		from, to := addrs[len(addrs)-1], addrs[0]
		by := n.sum(from) - n.sum(to)
		if by <= largest {
			return total
		}
		best := 0
		for i, units := range n[from] {
			if math.Abs(float64(units)-float64(by)/2) < math.Abs(float64(n[from][best])-float64(by)/2) {
				best = i
			}
		}
		n[to] = append(n[to], n[from][best])
		n[from] = slices.Delete(n[from], best, best+1)
	}
}

// As few streams move as make units level within the largest cost, and each takes its units
// along.
func TestStreamsMoveByTheirUnits(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			requireMost(t, func(try uint64) (figures []figure) {
				inTime(t, func(e *env) { figures = movesByUnits(e, rand.New(rand.NewPCG(seed, try))) })
				return figures
			})
		})
	}
}

// movesByUnits has streams of random costs move to an endpoint that joins, and leave one.
// It returns by how many the moves differ from those of the naive planner: one may be
// drawn, and of equals either may move.
func movesByUnits(e *env, r *rand.Rand) []figure {
	e.add("a", "b", "c")
	s := e.streams()
	defer s.end()
	s.overlap = r.IntN(2) == 0
	s.before = time.Duration(r.Int64N(int64(2 * time.Second)))
	on, last := naiveUnits{"d": nil}, map[string]int{}
	s.cost = func() int64 { return []int64{1, 1, 1, 100, 5000}[r.IntN(5)] + r.Int64N(100) }
	for range 100 {
		before := e.units()
		s.begin(1)
		last = e.units()
		for addr, units := range last {
			if by := units - before[addr]; by > 0 {
				on[addr] = append(on[addr], int64(by))
			}
		}
	}
	all := 0
	for _, units := range last {
		all += units
	}
	e.add("d")
	pass(time.Minute)
	off := math.Abs(float64(on.moves() - s.told()))
	units := slices.Sorted(maps.Values(e.units()))
	require.LessOrEqual(e, units[3]-units[0], 5099)
	require.Equal(e, all, units[0]+units[1]+units[2]+units[3])
	s.quiet()

	e.set("a", 0)
	pass(time.Minute)
	require.Zero(e, e.units()["a"])
	units = slices.Sorted(maps.Values(e.units()))
	require.LessOrEqual(e, units[3]-units[1], 5099)
	require.Equal(e, all, units[1]+units[2]+units[3])
	return []figure{{"moves off those of the naive planner", off, 2}}
}

// Small streams stay where a large one is why loads are uneven.
func TestSmallStreamsDoNotMoveForALargeOne(t *testing.T) {
	inTime(t, func(e *env) {
		e.add("a", "b")
		s := e.streams()
		defer s.end()
		s.begin(40)
		large := e.costing(1000)
		require.Equal(t, state.Chosen, large.acquire())
		pass(time.Minute)
		require.Zero(t, s.told())
		large.finish()
	})
}

// Costs change from many sides while streams move and end: what was set last holds.
func TestCostsChangeWhileStreamsMove(t *testing.T) {
	t.Parallel()
	inTime(t, func(e *env) {
		e.add("a", "b", "c")
		s := e.streams()
		defer s.end()
		s.overlap, s.before = true, 50*time.Millisecond
		units := func() int64 { return 1 + rand.Int64N(10_000) }
		s.cost = units
		s.begin(30)
		var rpcs []*rpc
		costs := s.costs
		for range 20 {
			r := e.costing(units())
			rpcs = append(rpcs, r)
			costs = append(costs, state.CostOf(r.ctx))
		}
		var setting sync.WaitGroup
		for _, r := range rpcs {
			setting.Go(func() {
				for range 40 {
					lease, _ := r.attempt(r.ctx, nil)
					for range 50 {
						costs[rand.IntN(len(costs))].Set(units())
						time.Sleep(rand.N(10 * time.Millisecond))
					}
					lease.Release()
				}
			})
		}
		for _, weight := range []uint32{0, 1, 0, 1} {
			e.set("a", weight)
			pass(4 * time.Second)
			require.NoError(t, e.ledger.Check())
		}
		setting.Wait()
		want := 0
		for i, c := range s.costs {
			c.Set(units())
			c.Set(int64(i + 1))
			want += i + 1
		}
		pass(time.Minute)
		got := e.units()
		require.Equal(t, want, got["a"]+got["b"]+got["c"])
		require.Positive(t, s.told())
	})
}

package state_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// naive is a planner that sees all at once: weights and streams by endpoint.
type naive struct {
	weights map[string]uint32
	caps    map[string]int
	streams map[string]int
}

// moves returns how many streams move in all: first, each of those that cannot stay, to the
// lowest share; then, from the highest share to the lowest, as long as that is lower with one more
// and one of both is a whole stream off its fair load.
func (n naive) moves() int {
	total := 0
	for _, addr := range slices.Sorted(maps.Keys(n.streams)) {
		for n.weights[addr] == 0 && n.streams[addr] > 0 {
			to := n.lowest()
			if to == "" {
				break
			}
			n.streams[addr]--
			n.streams[to]++
			total++
		}
	}
	for {
		from, to := n.highest(), n.lowest()
		if from == "" || to == "" || n.share(from, 0) <= n.share(to, 1) ||
			n.above(from) < 1-1e-9 && n.above(to) > -1+1e-9 {
			return total
		}
		n.streams[from]--
		n.streams[to]++
		total++
	}
}

func (n naive) share(addr string, more int) float64 {
	return float64(n.streams[addr]+more) / float64(n.weights[addr])
}

func (n naive) above(addr string) float64 {
	load, weight := 0, uint32(0)
	for a, w := range n.weights {
		if w > 0 {
			load, weight = load+n.streams[a], weight+w
		}
	}
	return float64(n.streams[addr]) - float64(load)/float64(weight)*float64(n.weights[addr])
}

func (n naive) lowest() (best string) {
	for addr, w := range n.weights {
		if w > 0 && n.streams[addr] < n.caps[addr] && (best == "" || n.share(addr, 1) < n.share(best, 1)) {
			best = addr
		}
	}
	return best
}

func (n naive) highest() (best string) {
	for addr, w := range n.weights {
		if w > 0 && (best == "" || n.share(addr, 0) > n.share(best, 0)) {
			best = addr
		}
	}
	return best
}

// shares returns the shares of those that take RPCs, from low to high.
func (n naive) shares() (all []float64) {
	for addr, w := range n.weights {
		if w > 0 {
			all = append(all, n.share(addr, 0))
		}
	}
	slices.Sort(all)
	return all
}

// Whatever changes, as many streams move as the naive planner moves, loads become as level as
// with it, and once that is quiet planned loads are the real ones and no place is left.
func TestPlanIsMinimal(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inTime(t, func(e *env) {
				r := rand.New(rand.NewPCG(seed, 1))
				equal := r.IntN(2) == 0
				weight := func() uint32 {
					if equal {
						return 1
					}
					return 1 + r.Uint32N(4)
				}
				want := naive{map[string]uint32{}, map[string]int{}, map[string]int{}}
				set := func(addr string, w uint32) {
					if e.members[addr] == nil {
						e.list(addr)
						want.caps[addr] = 1 << 30
						if r.IntN(4) == 0 {
							want.caps[addr] = 20 + r.IntN(60)
							e.members[addr].SetMaxInFlight(uint32(want.caps[addr]))
						}
					}
					e.set(addr, w)
					want.weights[addr] = w
				}
				for i := range 2 + r.IntN(4) {
					set(fmt.Sprint(i), weight())
				}
				s := e.streams()
				defer s.end()
				e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1000, DrainWithin: 3 * time.Second})
				s.before, s.overlap = time.Duration(r.Int64N(int64(2*time.Second))), r.IntN(2) == 0
				room := 0
				for addr := range want.weights {
					room += min(want.caps[addr], 100)
				}
				s.begin(min(room, 20+r.IntN(200)))
				pass(time.Minute) // what the first picks leave to do
				for range 3 {
					told := s.told()
					want.streams = map[string]int{}
					s.mu.Lock()
					maps.Copy(want.streams, s.on)
					s.mu.Unlock()
					switch addr := fmt.Sprint(r.IntN(6)); {
					case want.weights[addr] > 0 && r.IntN(2) == 0:
						set(addr, 0)
					default:
						set(addr, weight())
					}
					moves := want.moves()
					pass(time.Minute)
					if equal {
						require.InDelta(t, moves, s.told()-told, 1, "one may be drawn")
						got := naive{want.weights, want.caps, map[string]int{}}
						s.mu.Lock()
						maps.Copy(got.streams, s.on)
						s.mu.Unlock()
						require.Equal(t, want.shares(), got.shares())
					}
					s.quiet()
				}
			})
		})
	}
}

// quiet asserts that planned loads are the real ones.
func (s *streams) quiet() {
	s.Helper()
	snapshot := s.ledger.Snapshot()
	require.NoError(s, s.ledger.Check())
	require.Zero(s, snapshot.Moving)
	for _, n := range snapshot.Endpoints {
		require.Zero(s, n.Leaving+n.Arriving)
		require.EqualValues(s, s.at(n.Address()), n.InFlight, n.Address())
	}
	require.Equal(s, snapshot.EndpointSets[0].MovesAsked, snapshot.EndpointSets[0].MovesDone)
}

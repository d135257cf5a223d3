package order

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// pool is an order whose values are the numbers of what they stand for.
type pool struct {
	Order[int]
	handles   []Handle
	weights   []float64
	loads     []int64
	suspended []bool
}

func newPool(weights ...float64) *pool {
	p := new(pool)
	for i, w := range weights {
		p.handles = append(p.handles, p.Insert(w, 0, i))
	}
	p.weights = slices.Clone(weights)
	p.loads, p.suspended = make([]int64, len(weights)), make([]bool, len(weights))
	return p
}

func (p *pool) set(i int, load int64) {
	p.loads[i] = load
	if !p.suspended[i] {
		p.SetLoad(p.handles[i], load)
	}
}

// pick chooses and returns which, with one load more.
func (p *pool) pick() int {
	i := p.Value(p.Next(false))
	p.set(i, p.loads[i]+1)
	return i
}

func (p *pool) suspend(i int) {
	if p.suspended[i] = !p.suspended[i]; p.suspended[i] {
		p.Suspend(p.handles[i])
	} else {
		p.Resume(p.handles[i], p.loads[i])
	}
}

// above returns how far i's load is above its weighted share.
func (p *pool) above(i int) float64 {
	load, weight := 0.0, 0.0
	for j, w := range p.weights {
		if !p.suspended[j] {
			load += float64(p.loads[j])
			weight += w
		}
	}
	return float64(p.loads[i]) - load*p.weights[i]/weight
}

// serial chooses n times, one after another, and returns how often which.
func (p *pool) serial(n int) []int {
	got := make([]int, len(p.weights))
	for range n {
		i := p.pick()
		p.set(i, p.loads[i]-1)
		got[i]++
	}
	return got
}

func ramp(n int, weight func(i int) float64) []float64 {
	ws := make([]float64, n)
	for i := range ws {
		ws[i] = weight(i)
	}
	return ws
}

// everyday are weights that people give.
var everyday = map[string][]float64{
	"3:1":                      {3, 1},
	"5:3:1:1":                  {5, 3, 1, 1},
	"two classes":              ramp(40, func(i int) float64 { return float64(1 + i%2) }),
	"four classes":             ramp(100, func(i int) float64 { return []float64{1, 2, 3, 5}[i%4] }),
	"1 to 10":                  ramp(100, func(i int) float64 { return float64(1 + i%10) }),
	"1 to 2, all different":    ramp(100, func(i int) float64 { return 1 + float64(i)/99 }),
	"cores":                    {2, 4, 4, 8, 8, 16, 16, 32},
	"one heavy beside a crowd": append(ramp(100, func(i int) float64 { return 1 + float64(i)/1000 }), 10),
}

// Right after its choice a value is less than one above its weighted share, whatever has
// happened before.
func TestNobodyGetsOneAboveItsShare(t *testing.T) {
	for name, weights := range everyday {
		t.Run(name, func(t *testing.T) {
			p := newPool(weights...)
			for range 6000 {
				switch i := rand.IntN(len(weights)); rand.IntN(24) {
				case 0:
					p.set(i, rand.Int64N(30))
				case 1:
					p.Renew(p.handles[i], weights[rand.IntN(len(weights))])
					p.weights[i] = p.ClassWeight(p.handles[i])
				case 2:
					if p.Len() > 1 || p.suspended[i] {
						p.suspend(i)
					}
				case 3:
					h := p.Next(true)
					p.set(p.Value(h), p.loads[p.Value(h)]+1)
				case 4, 5, 6, 7, 8, 9, 10:
					p.set(i, max(0, p.loads[i]-1))
				default:
					got := p.pick()
					require.Less(t, p.above(got), 1+1e-9, "weight %v", p.weights[got])
				}
			}
			require.NoError(t, p.Check(func(i int) Standing { return Standing{p.weights[i], p.loads[i], p.suspended[i]} }))
		})
	}
}

// Growing from empty, nobody falls more than 1.2 behind its share; with one weight far
// above many that all differ, more. Where first turns are drawn so unluckily that one does,
// once in ten thousand, it is one of five.
func TestGrowthStaysLevel(t *testing.T) {
	for name, weights := range everyday {
		t.Run(name, func(t *testing.T) {
			sum, most := 0.0, 1.2
			for _, w := range weights {
				sum += w
			}
			switch name { // weights far apart
			case "cores":
				most = 1.6
			case "one heavy beside a crowd":
				most = 3.1
			}
			var beyond []string
			for range 5 {
				p := newPool(weights...)
				far, of := 0.0, 0.0
				for n := range 6 * len(weights) {
					p.pick()
					for i, w := range weights {
						if behind := float64(n+1)*w/sum - float64(p.loads[i]); behind > far {
							far, of = behind, w
						}
					}
				}
				if far > most {
					beyond = append(beyond, fmt.Sprintf("%v behind, weight %v", far, of))
				}
			}
			require.LessOrEqual(t, len(beyond), 1, "far behind their shares: %v", beyond)
		})
	}
}

// Choices one after another are spread by weight: each value is within a few of its
// share of a thousand.
func TestSerialChoicesGoByWeight(t *testing.T) {
	for _, tc := range []struct {
		weights []float64
		within  float64
	}{
		{[]float64{3, 1}, 2},
		{[]float64{5, 3, 1, 1}, 2},
		{[]float64{1 << 30, 1 << 28}, 2},
		{ramp(50, func(i int) float64 { return float64(i + 1) }), 3},
		{ramp(100, func(i int) float64 { return 1 + float64(i)/99 }), 3},
		{ramp(1000, func(i int) float64 { return float64(i + 1) }), 3},
	} {
		t.Run(fmt.Sprint(len(tc.weights), tc.weights[0]), func(t *testing.T) {
			sum := 0.0
			for _, w := range tc.weights {
				sum += w
			}
			p := newPool(tc.weights...)
			for range 3 {
				for i, n := range p.serial(1000) {
					require.InDelta(t, 1000*tc.weights[i]/sum, n, tc.within, "weight %v", tc.weights[i])
				}
			}
		})
	}
}

// Shares hold on after a day at small weights, at such as are a thousand million times
// as large: virtual time does not lose their steps.
func TestTimeDoesNotLoseSteps(t *testing.T) {
	p := newPool(2, 1)
	p.pick()
	p.turns.now = 1 << 40
	for i := range p.classes {
		p.classes[i].turn += 1 << 40
		p.update(int32(i))
	}
	p.Renew(p.handles[0], 3<<30)
	p.Renew(p.handles[1], 1<<30)
	p.set(0, 0)
	p.set(1, 0)
	p.serial(10)
	got := p.serial(1000)
	require.InDelta(t, 750, got[0], 2, "%v", got)
	require.Less(t, p.turns.now, 1.0)
}

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

// A forced choice has its class wait for longer, and nobody else for less.
func TestForcedChoiceLeavesTimeAlone(t *testing.T) {
	p := newPool(1, 1, 3)
	p.serial(20)
	now := p.turns.now
	for range 5 {
		p.refresh()
		h := p.Next(true)
		c := &p.classes[p.slots[h].class]
		require.Equal(t, now, p.turns.now)
		require.GreaterOrEqual(t, c.turn, now+c.step)
	}
}

// A tree finds what a search through all finds, whatever comes and goes.
func TestTreeAgreesWithASearch(t *testing.T) {
	for _, classes := range []int{1, 10, fanout + 1, 300, 3000} {
		t.Run(fmt.Sprint(classes), func(t *testing.T) {
			var tree classTree
			tree.reset()
			keys := map[int32]classKey{}
			for step := range 20000 {
				c := rand.Int32N(int32(classes))
				spread := 10 + 1000*uint64(step/1000%3)
				if _, ok := keys[c]; ok && rand.IntN(3) == 0 {
					tree.remove(c)
					delete(keys, c)
				} else {
					level := rand.Uint64N(spread)
					keys[c] = classKey{level, level + rand.Uint64N(50), rand.Uint64N(1000)}
					tree.set(c, keys[c])
				}
				if step%10 > 0 && len(keys) > 20 {
					continue
				}
				limit := rand.Uint64N(spread + 10)
				want, after := uint64(never), uint64(never)
				for _, k := range keys {
					after = min(after, k.after)
					if k.level < limit {
						want = min(want, k.turn)
					}
				}
				require.Equal(t, after, tree.leastAfter())
				if got := tree.next(limit); want == never {
					require.EqualValues(t, none, got)
				} else {
					require.Equal(t, want, keys[got].turn)
					require.Less(t, keys[got].level, limit)
				}
			}
			require.NoError(t, tree.check(len(keys)))
			for c := range keys {
				tree.remove(c)
			}
			require.NoError(t, tree.check(0))
		})
	}
}

// A tree of ten thousand classes is three nodes high, and stays so.
func TestTreeIsFlat(t *testing.T) {
	p := newPool(ramp(10000, func(i int) float64 { return float64(i + 1) })...)
	height := func() (n int) {
		for at := p.tree.root; p.tree.nodes[at].inner; at = p.tree.nodes[at].child[0] {
			n++
		}
		return n + 1
	}
	var open []int
	for range 30000 {
		open = append(open, p.pick())
		if len(open) > 8000 {
			i := rand.IntN(len(open))
			p.set(open[i], p.loads[open[i]]-1)
			open = slices.Delete(open, i, i+1)
		}
		require.LessOrEqual(t, height(), 4)
	}
	require.LessOrEqual(t, len(p.tree.nodes)-len(p.tree.spare), 10000/(fanout/4)*2)
}

// The sum of the weights does not drift, however unlike those are that come and go.
func TestSumOfWeightsDoesNotDrift(t *testing.T) {
	p := newPool(1e-6, 3e-6)
	for range 1000 {
		var hs []Handle
		for range 4 {
			hs = append(hs, p.Append(float64(1<<31)*(1+rand.Float64()), 0, 9))
		}
		for _, h := range hs {
			p.Remove(h)
		}
	}
	require.InEpsilon(t, 4e-6, p.turns.weight.Value(), 1e-12)
}

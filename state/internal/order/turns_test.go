package order

import (
	"fmt"
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

package order

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

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

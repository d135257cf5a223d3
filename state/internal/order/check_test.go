package order

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// body is an order with all that Check looks at: two classes, many loads, one of
// them with several values, levels, a free bucket and a free handle.
type body struct {
	Order[[2]int64] // weight and load
	values          []Handle
}

func newBody() *body {
	b := new(body)
	add := func(weight, load int64) {
		b.values = append(b.values, b.Append(float64(weight), load, [2]int64{weight, load}))
	}
	for range 3 {
		add(1, 0)
	}
	add(2, 1)
	for load := range int64(48) {
		add(1, load+1)
	}
	b.Remove(b.values[20]) // the only one with its load
	return b
}

func (b *body) low() *bucket    { return &b.buckets[b.classes[0].lowest] }
func (b *body) second() *bucket { return &b.buckets[b.low().next] }
func (b *body) raised() *bucket { return &b.buckets[b.classes[0].levels[0]] }

// corruptions break one thing each; Check must say so.
var corruptions = map[string]struct {
	corrupt func(b *body)
	says    string
}{
	"value's load":       {func(b *body) { b.slots[5].value[1]++ }, "stands at"},
	"value's weight":     {func(b *body) { b.slots[5].value[0] = 7 }, "with weight 7 stands in class 1"},
	"lost handle":        {func(b *body) { b.handles = b.handles[1:] }, "51 handles for 52 slots"},
	"handle's index":     {func(b *body) { b.slots[3].index = 4 }, "is not at its index"},
	"handle twice":       {func(b *body) { b.handles[3] = b.handles[4] }, "is not at its index"},
	"free handle in use": {func(b *body) { b.used++ }, "values in buckets, 52 in use"},
	"used handle free":   {func(b *body) { b.used-- }, "values in buckets, 50 in use"},
	"free slot's bucket": {func(b *body) { b.slots[20].bucket = 0 }, "in bucket 0 is used: false"},
	"used slot's bucket": {func(b *body) { b.slots[21].bucket = none }, "in bucket -1 is used: true"},

	"class's quantum":  {func(b *body) { b.byWeight[1] = 0 }, "is found by another weight"},
	"lost class":       {func(b *body) { b.classes = append(b.classes, weightClass{}) }, "free of"},
	"class's size":     {func(b *body) { b.classes[0].size++ }, "class 1: size"},
	"free bucket":      {func(b *body) { b.freeBuckets[0] = b.classes[0].lowest }, "is in use"},
	"lost free bucket": {func(b *body) { b.freeBuckets = nil }, "free of"},
	"order of buckets": {func(b *body) { b.low().load = 1 << 20 }, "is out of order"},
	"bucket's class":   {func(b *body) { b.low().class++ }, "is out of order"},
	"its neighbour":    {func(b *body) { b.second().prev = none }, "is out of order"},
	"lost bucket": {func(b *body) {
		next := b.second().next
		b.low().next, b.buckets[next].prev = next, b.classes[0].lowest
	}, "class 1: size"},
	"bucket not on its level": {func(b *body) { b.classes[0].levels[0] = none }, "on the levels"},
	"order on a level":        {func(b *body) { b.raised().load = 1 << 20 }, "on level 0"},
	"neighbour on a level":    {func(b *body) { b.raised().forward[0].prev = b.classes[0].lowest }, "on level 0"},
	"bucket's size":           {func(b *body) { b.low().size++ }, "has size"},
	"bucket's tail":           {func(b *body) { b.low().tail = None }, "has size"},
	"slot's bucket":           {func(b *body) { b.slots[b.low().tail].bucket = b.classes[1].lowest }, "is broken at"},
	"slot's neighbour":        {func(b *body) { b.slots[b.low().tail].prev = None }, "is broken at"},
	"order of waiting":        {func(b *body) { b.slots[b.low().head].stamp = 1 << 40 }, "is broken at"},

	"lost from the tree":  {func(b *body) { b.tree.size-- }, "2 classes in use, 1 in the tree"},
	"best and empty":      {func(b *body) { b.classes[0].size = 0 }, "class 0 is best and empty"},
	"leaf's score":        {func(b *body) { b.tree.scores[0][1] = 7 }, "leaf 1 has key"},
	"leaf's stamp":        {func(b *body) { b.tree.stamps[1]-- }, "leaf 1 has key"},
	"leaf of no class":    {func(b *body) { b.tree.scores[0][2] = 7 }, "leaf 2 has key"},
	"match by score":      {func(b *body) { b.tree.scores[1][0] = 7 }, "was won by"},
	"match by waiting":    {func(b *body) { b.tree.winners[1][0] ^= 1 }, "was won by"},
	"best is not the one": {func(b *body) { b.tree.best ^= 1 }, "class 1 is best, 0 has won"},
}

func TestCheckSeesEachCorruption(t *testing.T) {
	for name, tc := range corruptions {
		t.Run(name, func(t *testing.T) {
			b := newBody()
			for try := 0; len(b.classes[0].levels) == 0 || b.classes[0].levels[0] == b.classes[0].lowest; try++ {
				require.Less(t, try, 1000)
				b = newBody()
			}
			require.NoError(t, b.check())
			tc.corrupt(b)
			require.ErrorContains(t, b.check(), tc.says)
		})
	}
}

func (b *body) check() error {
	return b.Check(func(v [2]int64) (float64, int64) { return float64(v[0]), v[1] })
}

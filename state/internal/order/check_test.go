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
func (b *body) raised() *bucket { return &b.buckets[b.nodes[b.classes[0].levels[0]].bucket] }

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
	"free handle in use": {func(b *body) { b.used++ }, "in class -1 is used: true"},
	"used handle free":   {func(b *body) { b.used-- }, "is used: false"},
	"free slot's class":  {func(b *body) { b.slots[20].class = 0 }, "in class 0 is used: false"},
	"used slot's bucket": {func(b *body) { b.slots[21].bucket = none }, "in bucket -1 is suspended: false"},

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
	"load on a level":         {func(b *body) { b.nodes[b.raised().node].load-- }, "on level 0"},
	"node of another bucket":  {func(b *body) { b.nodes[b.raised().node].bucket = b.classes[0].lowest }, "on level 0"},
	"neighbour on a level":    {func(b *body) { b.nodes[b.raised().node].prev = 1 << 20 }, "on level 0"},
	"bucket's size":           {func(b *body) { b.low().size++ }, "has size"},
	"bucket's tail":           {func(b *body) { b.low().tail = None }, "has size"},
	"slot's bucket":           {func(b *body) { b.slots[b.low().tail].bucket = b.classes[1].lowest }, "is broken at"},
	"slot's neighbour":        {func(b *body) { b.slots[b.low().tail].prev = None }, "is broken at"},
	"order of waiting":        {func(b *body) { b.slots[b.low().head].stamp = 1 << 40 }, "is broken at"},

	"suspended or not":   {func(b *body) { b.slots[5].value[0] = -1 }, "is suspended: true"},
	"members":            {func(b *body) { b.classes[0].members++ }, "has 51 members, 50 are of it"},
	"class of a slot":    {func(b *body) { b.slots[5].class = 1; b.slots[5].value[0] = 2 }, "stands in one of class 0"},
	"takers":             {func(b *body) { b.classes[0].takers-- }, "49 take turns, 50 are in buckets"},
	"step":               {func(b *body) { b.classes[0].step *= 2 }, "a step is"},
	"turn":               {func(b *body) { b.classes[0].turn = -1 }, "its turn is"},
	"sum of loads":       {func(b *body) { b.turns.load++ }, "are counted"},
	"sum of weights":     {func(b *body) { b.turns.weight.low = 1e-9 }, "is counted"},
	"time":               {func(b *body) { b.turns.now = -1 }, "the time is"},
	"values":             {func(b *body) { b.placed++ }, "are counted"},
	"lost from the tree": {func(b *body) { b.tree.remove(0) }, "is in the tree: false"},
	"level in the tree":  {func(b *body) { b.tree.nodes[0].level[0]++ }, "stands by"},
	"turn in the tree":   {func(b *body) { b.classes[1].turn++ }, "stands by"},
}

func TestCheckSeesEachCorruption(t *testing.T) {
	for name, tc := range corruptions {
		t.Run(name, func(t *testing.T) {
			b := newBody()
			for try := 0; len(b.classes[0].levels) == 0 || b.raised() == b.low(); try++ {
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
	return b.Check(func(v [2]int64) Standing { return Standing{float64(v[0]), v[1], v[0] < 0} })
}

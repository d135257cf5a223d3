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

	"class not in the heap": {func(b *body) { b.heap.nodes = b.heap.nodes[:1] }, "1 of 2 classes"},
	"class twice":           {func(b *body) { b.heap.nodes[1].class = 0 }, "is not at place 1"},
	"class's place":         {func(b *body) { b.heap.index[1] = 0 }, "is not at place"},
	"free class's place":    {func(b *body) { b.heap.nodes[1].class = 2; b.classes = append(b.classes, weightClass{}) }, "is not at place 1"},
	"key's score":           {func(b *body) { b.heap.nodes[1].score = 7 }, "has another key"},
	"key's stamp":           {func(b *body) { b.heap.nodes[0].stamp = 0 }, "has another key"},
	"first by score": {func(b *body) {
		b.low().load = -1
		b.heap.nodes[1], b.heap.nodes[0] = classNode{b.key(0), 0}, b.heap.nodes[1]
		b.heap.index = []int32{1, 0}
	}, "comes before the one above"},
	"first by waiting": {func(b *body) {
		b.heap.nodes[0], b.heap.nodes[1] = b.heap.nodes[1], b.heap.nodes[0]
		b.heap.index = []int32{1, 0}
	}, "comes before the one above"},
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

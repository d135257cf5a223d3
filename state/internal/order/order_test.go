package order

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// named is an order of values that are told by name.
type named struct {
	Order[string]
	handle map[string]Handle
}

func (o *named) add(name string, weight float64, load int64) {
	o.handle[name] = o.Append(weight, load, name)
}

func (o *named) load(name string, load int64)       { o.SetLoad(o.handle[name], load) }
func (o *named) weight(name string, weight float64) { o.SetWeight(o.handle[name], weight) }
func (o *named) first() string                      { return o.Value(o.First()) }

// drain returns the values in the order in which they are chosen.
func (o *Order[V]) drain() (values []V) {
	for o.First() != None {
		values = append(values, o.Value(o.First()))
		o.Remove(o.First())
	}
	return values
}

func TestRules(t *testing.T) {
	for _, rule := range []struct {
		name  string
		given func(o *named)
		want  string
	}{
		{"nothing", func(*named) {}, ""},
		{"the lowest load is first", func(o *named) { o.add("a", 1, 2); o.add("b", 1, 0); o.add("c", 1, 1) }, "b c a"},
		{"equals are first in, first out", func(o *named) { o.add("b", 1, 0); o.add("a", 1, 0); o.add("c", 1, 0) }, "b a c"},
		{"near weights are one", func(o *named) { o.add("b", 1<<30, 0); o.add("a", 1<<30+1, 0) }, "b a"},
		{"a load that changes goes behind", func(o *named) { o.add("a", 1, 1); o.add("b", 1, 0); o.load("a", 0) }, "b a"},
		{"and again", func(o *named) { o.add("a", 1, 0); o.add("b", 1, 0); o.load("a", 1); o.load("a", 0) }, "b a"},
		{"and when set as it was", func(o *named) { o.add("a", 1, 0); o.add("b", 1, 0); o.load("a", 0) }, "b a"},
		{"and keeps the turn", func(o *named) {
			o.add("a", 1, 0)
			o.add("b", 2, 0)
			o.add("c", 1, 0)
			o.weight("b", 1)
		}, "a b c"},
		{"another value keeps the turn", func(o *named) { o.add("a", 1, 0); o.add("b", 1, 0); o.SetValue(o.handle["a"], "c") }, "c b"},
		{"a handle outlives others", func(o *named) {
			o.add("a", 1, 0)
			o.add("b", 1, 1)
			o.add("c", 1, 2)
			o.Remove(o.handle["a"])
			o.add("d", 1, 3)
			o.load("b", 9)
			o.load("c", 8)
		}, "d c b"},
	} {
		t.Run(rule.name, func(t *testing.T) {
			o := &named{handle: map[string]Handle{}}
			rule.given(o)
			require.Equal(t, strings.Fields(rule.want), append([]string{}, o.drain()...))
			require.Zero(t, o.Len())
		})
	}
}

// What is excluded is not chosen and, since it was tried, goes behind its equals:
// behind those that were chosen meanwhile, too.
func TestExcludedGoBehind(t *testing.T) {
	o := &named{handle: map[string]Handle{}}
	for _, name := range []string{"a", "b", "c", "d"} {
		o.add(name, 1, 0)
	}
	o.load("c", 1)
	o.load("d", 1)
	o.Excluding([]Handle{o.handle["d"], o.handle["a"]}, func() {
		require.Equal(t, "b", o.first())
		o.load("b", 1)
		require.Equal(t, "c", o.first())
	})
	require.Equal(t, []string{"a", "c", "b", "d"}, o.drain())

	o.add("a", 1, 0)
	o.Excluding([]Handle{o.handle["a"]}, func() { require.Equal(t, None, o.First()) })
	require.Equal(t, []string{"a"}, o.drain())
}

// What comes meanwhile gets a place among the others.
func TestInsertWhileExcluding(t *testing.T) {
	var o Order[int]
	var hs []Handle
	for range 1000 {
		hs = append(hs, o.Append(1, 0, 0))
	}
	o.Excluding(hs[50:], func() { o.Insert(1, 0, 1) })
	require.NoError(t, o.Check(func(int) Standing { return Standing{Weight: 1} }))
	require.Contains(t, o.drain()[:51], 1)
}

// nearWeights are pairs and whether they are taken as one: within 2⁻¹⁶ of the
// first, which was there before the second.
var nearWeights = []struct {
	first, second float64
	near          bool
}{
	{536870911, 536870912, true}, // fixed-point shares of equals
	{536870912, 536870911, true},
	{715827882, 715827883, true},
	{1 << 30, 1<<30 + 1<<14, true},
	{1 << 30, 1<<30 + 1<<14 + 1, false},
	{1 << 30, 1<<30 - 1<<14, true},
	{1 << 30, 1<<30 - 1<<14 - 1, false},
	{1<<31 - 1, 1 << 31, true},
	{1 << 31, 1<<31 - 1<<15, true},
	{1 << 31, 1<<31 - 1<<15 - 1, false},
	{2040102912, 2040102912 - 31129, true}, // two steps of 2¹⁴ apart
	{2040102912, 2040102912 + 31129, true},
	{2040102912, 2040102912 + 31130, false},
	{65536, 65537, true},
	{65535, 65536, false},
	{1, 2, false},
	{100, 101, false},
	{1e-300, 2e-300, false},
}

func TestNearWeights(t *testing.T) {
	for _, tc := range nearWeights {
		var o Order[int]
		o.Append(tc.first, 0, 1)
		second := o.Append(tc.second, 0, 2)
		class := map[bool]float64{true: tc.first, false: tc.second}[tc.near]
		require.Equal(t, class, o.ClassWeight(second), "%v", tc)
	}
}

// Of two classes near a weight the nearest takes it, whichever was there first.
func TestNearestWeightIsTaken(t *testing.T) {
	const low, high = 1 << 30, 1<<30 + 1<<14 + 1<<13
	for _, classes := range [][]float64{{low, high}, {high, low}} {
		for add, want := range map[float64]float64{1 << 13: low, 1 << 14: high, 1<<13 + 1<<12: low} {
			var o Order[int]
			for _, w := range classes {
				o.Append(w, 0, 0)
			}
			require.Equal(t, want, o.ClassWeight(o.Append(low+add, 0, 0)), "%v %v", classes, add)
		}
	}
}

// What comes last does not bring others forward: with one more than each other has now
// it would still not come before.
func TestIsWorst(t *testing.T) {
	for _, tc := range []struct {
		weight, otherWeight float64
		load, otherLoad     int64
		want                bool
	}{
		{1, 1, 5, 5, false}, // equals do not go behind each other
		{1, 1, 6, 5, true},
		{1, 1, 4, 5, false},
		{4, 1, 11, 2, false}, // 11/4 and 3/1
		{4, 1, 12, 2, true},
		{1, 4, 2, 11, false}, // 2/1 and 12/4
		{1, 4, 2, 8, false},  // 2/1 and 9/4, though 3/1 is above that
		{1, 4, 2, 7, true},
		{1, 4, 3, 11, true},
	} {
		var o Order[int]
		h := o.Append(tc.weight, tc.load, 1)
		require.True(t, o.IsWorst(h), "alone")
		o.Append(tc.otherWeight, tc.otherLoad, 2)
		o.Append(tc.otherWeight, 0, 3)
		require.Equal(t, tc.want, o.IsWorst(h), "%v", tc)
	}
}

// A handle is used again; what it held is not kept.
func TestRemovedValueIsForgotten(t *testing.T) {
	var o Order[*int]
	h := o.Insert(1, 0, new(int))
	o.Remove(h)
	require.Nil(t, o.slots[h].value)
	require.Equal(t, h, o.Append(1, 0, nil))
}

// requirePlaces inserts again and again and requires that each of the places
// among n equals is as likely as the others, by seven standard deviations: a fair
// draw fails it about once in 10¹¹ comparisons.
func requirePlaces(t *testing.T, places int, place func() int) {
	t.Helper()
	const trials = 2000
	seen := make([]int, places)
	for range trials {
		seen[place()]++
	}
	p := 1 / float64(places)
	for i, n := range seen {
		require.InDelta(t, p*trials, n, 7*math.Sqrt(trials*p*(1-p)), "place %d", i)
	}
}

func TestNewcomersPlaceIsRandom(t *testing.T) {
	for _, tc := range []struct{ gone, equals, quarters int }{
		{0, 3, 4}, // one is a quarter then
		{0, 31, 4},
		{0, 99, 4},
		{2000, 99, 4}, // most handles are free
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			var o Order[int]
			var hs []Handle
			for i := range tc.gone + tc.equals {
				hs = append(hs, o.Append(1, 0, i))
			}
			rand.Shuffle(len(hs), func(i, j int) { hs[i], hs[j] = hs[j], hs[i] })
			for _, h := range hs[:tc.gone] {
				o.Remove(h)
			}
			requirePlaces(t, tc.quarters, func() int {
				h := o.Insert(1, 0, -1)
				place := 0
				for at := o.slots[h].prev; at != None; at = o.slots[at].prev {
					place++
				}
				o.Remove(h)
				return place * tc.quarters / (tc.equals + 1)
			})
		})
	}
}

// The levels of a skip list thin out by four: so many buckets are on each that a
// search is short, and so few that it skips. The bounds are ten standard
// deviations of the first level, seven of the third.
func TestLevelsThinOut(t *testing.T) {
	const n = 8192
	var o Order[int]
	for i := range n {
		o.Append(1, int64(i), i)
	}
	c := &o.classes[0]
	onLevel := func(level int) (found int) {
		for b := c.levels[level]; b != none; b = o.nodes[b].next {
			found++
		}
		return found
	}
	require.GreaterOrEqual(t, len(c.levels), 3)
	require.InDelta(t, n/4, onLevel(0), 400)
	require.InDelta(t, n/16, onLevel(1), 250)
	require.InDelta(t, n/64, onLevel(2), 80)
}

// A load that changes allocates nothing, once the tables have grown.
func TestSetLoadAllocatesNothing(t *testing.T) {
	for _, weightOf := range benchWeights {
		o, hs := newBench(100, weightOf)
		change := func() {
			h := hs[rand.IntN(len(hs))]
			o.SetLoad(h, rand.Int64N(200))
			o.SetLoad(o.Next(false), rand.Int64N(200))
		}
		for range 5000 {
			change()
		}
		require.Zero(t, testing.AllocsPerRun(1000, change))
	}
}

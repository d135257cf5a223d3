package state_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestD39CountsFollowSmallWeights(t *testing.T) {
	s := newSite(t)
	weights := map[string]uint32{"a": 2, "b": 5}
	s.list("a", "b")
	for a, w := range weights {
		s.set(a, w)
	}
	want := map[int]map[string]int{7: {"a": 2, "b": 5}, 14: {"a": 4, "b": 10}, 21: {"a": 6, "b": 15}}
	for held := 1; held <= 21; held++ {
		s.open()
		got := s.loads()
		require.InDelta(t, float64(got["a"])/2, float64(got["b"])/5, 0.5, "%d held", held)
		if w := want[held]; w != nil {
			require.Equal(t, w, got)
		}
	}
}

func TestD41SmallShareIsKept(t *testing.T) {
	s := newSite(t)
	s.list("a", "b")
	s.set("a", 95)
	s.set("b", 5)
	s.openMany(200)
	require.Equal(t, map[string]int{"a": 190, "b": 10}, s.loads())

	all := slices.Concat(slices.Repeat([]string{"a"}, 190), slices.Repeat([]string{"b"}, 10))
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, a := range all[:100] {
		s.end(a, 1)
	}
	s.openMany(100)
	require.InDelta(t, 190, s.loads()["a"], 1)
	require.InDelta(t, 10, s.loads()["b"], 1)
}

// A change of weight keeps the count and holds from the next choice on.
func TestWeightChangeKeepsTheCount(t *testing.T) {
	s := newSite(t)
	s.add("a", "b")
	s.openMany(8)
	s.set("a", 3)
	require.Equal(t, map[string]int{"a": 4, "b": 4}, s.loads())
	require.Equal(t, map[string]int{"a": 8}, s.openMany(8), "to 12 and 4")
	s.set("a", 1)
	require.Equal(t, map[string]int{"b": 8}, s.openMany(8))
	require.Equal(t, map[string]int{"a": 12, "b": 12}, s.loads())
}

// Weight 0 takes no new leases; those it has live on and are counted when it is
// back.
func TestDrainAndBack(t *testing.T) {
	s := newSite(t)
	s.add("a", "b")
	s.openMany(8)
	s.set("a", 0)
	require.Equal(t, map[string]int{"b": 2}, s.openMany(2))
	require.Equal(t, map[string]int{"a": 4, "b": 6}, s.loads())
	s.end("a", 1)
	s.set("a", 1)
	require.Equal(t, map[string]int{"a": 3}, s.openMany(3))
	s.set("a", 0)
	s.set("b", 0)
	_, _, ok := s.view.Acquire()
	require.False(t, ok, "all are draining")
	s.end("b", 6)
	s.set("b", 1)
	require.Equal(t, "b", s.open())
}

func TestDrainInTheSnapshot(t *testing.T) {
	s := newSite(t)
	s.add("a")
	s.open()
	m := s.ledger.Snapshot().Endpoints[0].Members[0]
	require.True(t, m.Ready)
	require.False(t, m.Draining)
	require.EqualValues(t, 2, m.Score)
	s.set("a", 0)
	m = s.ledger.Snapshot().Endpoints[0].Members[0]
	require.True(t, m.Ready)
	require.True(t, m.Draining)
	require.Zero(t, m.Score)
	require.Zero(t, m.Weight)
}

// nearWeights are pairs and whether they are taken as one: within 2⁻¹⁶ of the
// first, which was there before the second.
var nearWeights = []struct {
	first, second uint32
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
}

// Weights that are near each other rotate as equals; others do not: the heavier
// one gets all idle calls.
func TestNearWeightsAreOne(t *testing.T) {
	for _, tc := range nearWeights {
		s := newSite(t)
		s.list("a", "b")
		s.set("a", tc.first)
		s.set("b", tc.second)
		if tc.near {
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(requireRotation(s, 2, 3)))), 2, "%v", tc)
			continue
		}
		heavier := map[bool]string{true: "a", false: "b"}[tc.first > tc.second]
		require.Equal(t, []string{heavier, heavier, heavier}, s.round(3), "%v", tc)
	}
}

// Which weights are taken as one is what the model says, for any weights.
func TestNearWeightsAgreeWithTheModel(t *testing.T) {
	for range 3000 {
		s, m := newSite(t), statetest.NewModel()
		base := rand.Uint32N(1<<31-1<<17) + 1<<16
		m.Open(0, 1)
		for _, a := range names(5) {
			w := base + rand.Uint32N(3*(base>>16))
			s.list(a)
			s.set(a, w)
			m.Add(0, a)
			m.Set(0, 0, a, w)
		}
		for range 12 {
			best := m.Best(0, 0)
			a := s.open()
			require.Contains(t, best, a, "base %d", base)
			m.Choose(0, 0, a)
		}
		s.close()
	}
}

package state_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireFair compares how often each of several equally likely things was
// seen with its expectation. The bound is seven standard deviations: a fair
// draw fails it about once in 10¹¹ comparisons.
func requireFair[K comparable](t *testing.T, seen map[K]int, kinds, trials int) {
	t.Helper()
	p := 1 / float64(kinds)
	want, bound := p*float64(trials), 7*math.Sqrt(float64(trials)*p*(1-p))
	require.Len(t, seen, kinds)
	for k, n := range seen {
		require.InDelta(t, want, n, bound, "%v", k)
	}
}

type place struct {
	addr string
	at   int
}

// A fleet does not move in step: in a fresh ready set each endpoint is as likely to
// stand first, second and so on, whatever the order of the list.
func TestStartIsRandom(t *testing.T) {
	const trials = 2000
	seen := map[place]int{}
	for range trials {
		s := newSite(t)
		s.add(names(5)...)
		for i, a := range s.round(5) {
			seen[place{a, i}]++
		}
		s.close()
	}
	require.Len(t, seen, 25)
	for i := range 5 {
		at := map[string]int{}
		for p, n := range seen {
			if p.at == i {
				at[p.addr] = n
			}
		}
		requireFair(t, at, 5, trials)
	}
}

// The first choice is fair in a long list, too, up to the shortcut that places
// newcomers there: nobody is first twice as often as its share, and the early
// and the late half of the list come about equally often.
func TestStartIsRandomInALongList(t *testing.T) {
	const n, trials = 100, 3000
	late, seen := 0, map[string]int{}
	for range trials {
		s := newSite(t)
		s.add(names(n)...)
		a := s.call()
		seen[a]++
		if a >= names(n)[n/2] {
			late++
		}
		s.close()
	}
	require.InDelta(t, trials/2, late, trials/10) // 11 standard deviations
	require.Len(t, seen, n)                       // all but certain: (1−1/100)^4000 = 3·10⁻¹⁸ each
	for a, got := range seen {
		require.Less(t, got, 90, "%s: 11 standard deviations above the share of 30", a)
	}
}

// A newcomer stands anywhere among its equals.
func TestNewcomersPlaceIsRandom(t *testing.T) {
	const trials = 2000
	s := newSite(t)
	s.add(names(4)...)
	seen := map[int]int{}
	for range trials {
		s.round(4)
		s.add("new")
		seen[slices.Index(s.round(5), "new")]++
		s.remove("new")
	}
	requireFair(t, seen, 5, trials)
}

// So does one that comes back as it was, or that gets another weight and then
// its old one.
func TestPlaceOfOneThatReturnsIsRandom(t *testing.T) {
	const trials = 1000
	s := newSite(t)
	s.add(names(5)...)
	flap := map[int]int{}
	reweigh := map[int]int{}
	for range trials {
		s.round(5)
		s.view.Remove(s.members["n0002"])
		s.set("n0002", 1)
		flap[slices.Index(s.round(5), "n0002")]++
		s.set("n0002", 2)
		s.set("n0002", 1)
		reweigh[slices.Index(s.round(5), "n0002")]++
	}
	requireFair(t, flap, 5, trials)
	requireFair(t, reweigh, 5, trials)
}

// Where the equals are of other weights a newcomer's place is drawn, too, as
// near to random as the stamps allow: never always the same.
func TestNewcomersPlaceAcrossWeights(t *testing.T) {
	s := newSite(t)
	s.add(names(8)...)
	s.list("new")
	s.load("new", 2)
	seen := map[int]bool{}
	for range 300 {
		s.round(8)
		s.set("new", 3)
		seen[slices.Index(s.round(9), "new")] = true
		s.view.Remove(s.members["new"])
	}
	require.GreaterOrEqual(t, len(seen), 3, "%v", seen)
}

// Fifty processes with the same load see three newcomers at once. Each of them
// opens one: no newcomer gets none (each group of fifty would by chance once in
// 10⁸) and, over all groups, each gets its third, with a bound of more than five
// standard deviations.
func TestD48NewcomersAreNotCrowded(t *testing.T) {
	const groups, scopes = 40, 50
	all := map[string]int{}
	for range groups {
		group := map[string]int{}
		for range scopes {
			s := newSite(t)
			s.add("a", "b")
			require.Equal(t, map[string]int{"a": 1, "b": 1}, s.openMany(2))
			s.add("c", "d", "e")
			group[s.open()]++
			s.close()
		}
		require.Len(t, group, 3)
		require.Subset(t, []string{"c", "d", "e"}, slices.Collect(maps.Keys(group)))
		for a, n := range group {
			all[a] += n
		}
	}
	for a, n := range all {
		require.InDelta(t, groups*scopes/3, n, 120, a)
	}
}

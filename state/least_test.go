package state_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A newcomer gets every next pick until it is level with the others.
func TestNewcomerIsFilledFirst(t *testing.T) {
	s := newSite(t)
	s.add("a", "b")
	s.openMany(8)
	s.add("c")
	require.Equal(t, map[string]int{"c": 4}, s.openMany(4))
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, s.openMany(3))
}

func TestD02OneGrowsToFive(t *testing.T) {
	s := newSite(t)
	s.add("a")
	s.openMany(8)
	s.add("b", "c", "d", "e")
	require.Equal(t, map[string]int{"b": 8, "c": 8, "d": 8, "e": 8}, s.openMany(32))
}

func TestD26NeverTheBusier(t *testing.T) {
	s := newSite(t)
	s.list("a", "b")
	s.load("a", 5)
	s.set("a", 1)
	s.set("b", 1)
	require.Equal(t, map[string]int{"b": 5}, s.openMany(5))
}

func TestD26NeverTheBusierWithRandomLoads(t *testing.T) {
	for trial := range 200 {
		s := newSite(t)
		s.list("a", "b")
		loads := map[string]int{"a": rand.IntN(10), "b": rand.IntN(10)}
		for a, n := range loads {
			s.load(a, n)
			s.set(a, 1)
		}
		for range 20 {
			got := s.open()
			other := map[string]string{"a": "b", "b": "a"}[got]
			require.LessOrEqual(t, loads[got], loads[other], "trial %d", trial)
			loads[got]++
		}
	}
}

func TestD32TheLeastNotTheMost(t *testing.T) {
	s := newSite(t)
	s.list("a", "b", "c")
	for a, n := range map[string]int{"a": 3, "b": 1, "c": 2} {
		s.load(a, n)
		s.set(a, 1)
	}
	require.Equal(t, "b", s.open())
}

func TestD32NeverTheOnlyBusyOne(t *testing.T) {
	s := newSite(t)
	s.list("a", "b", "c")
	s.load("c", 1)
	for _, a := range []string{"a", "b", "c"} {
		s.set(a, 1)
	}
	for range 100 {
		require.NotEqual(t, "c", s.call())
	}
}

// leastOf is the brute force: the score that no member of a ready set beats.
func leastOf(loads []int, weights []uint32) float64 {
	low := float64(loads[0]+1) / float64(weights[0])
	for i, n := range loads {
		low = min(low, float64(n+1)/float64(weights[i]))
	}
	return low
}

// A load may be anything when an endpoint comes into a ready set, or comes back: the
// order must find its place among 2,000 as brute force does. Equal weights make
// it one list of some hundreds of loads; distinct ones a deep tournament.
func TestLoadsThatJump(t *testing.T) {
	const n, steps, widest = 2000, 1500, 600
	weightings := map[string]func(i int) uint32{
		"equal":    func(int) uint32 { return 1 },
		"four":     func(i int) uint32 { return []uint32{1, 2, 3, 5}[i%4] },
		"distinct": func(i int) uint32 { return uint32(i+1) << 16 },
	}
	for name, weightOf := range weightings {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			ns := names(n)
			s.list(ns...)
			at := map[string]int{}
			loads, weights := make([]int, n), make([]uint32, n)
			for i, a := range ns {
				at[a], loads[i], weights[i] = i, rand.IntN(rand.IntN(widest)+1)/8, weightOf(i)
				s.load(a, loads[i])
				s.set(a, weights[i])
			}
			require.NoError(t, s.ledger.Check())
			for step := range steps {
				i := rand.IntN(n)
				switch rand.IntN(3) {
				case 0: // up, out of the ready set's sight
					more := rand.IntN(widest / 8)
					s.load(ns[i], more)
					s.set(ns[i], weights[i])
					loads[i] += more
				case 1: // down, in it
					s.end(ns[i], loads[i]-loads[i]/2)
					loads[i] /= 2
				default:
					got := at[s.open()]
					require.Equal(t, leastOf(loads, weights), float64(loads[got]+1)/float64(weights[got]), "step %d", step)
					loads[got]++
				}
			}
			require.NoError(t, s.ledger.Check())
		})
	}
}

// Choices over loads set once are those of brute force to the end, down to the
// order of a sorted list when each is ended and never chosen again.
func TestLeastOfManyDistinctLoads(t *testing.T) {
	const n = 300
	for _, distinct := range []bool{false, true} {
		t.Run(fmt.Sprint("weights=", distinct), func(t *testing.T) {
			s := newSite(t)
			ns := names(n)
			s.list(ns...)
			loads := rand.Perm(n)
			scores := map[string]float64{}
			for i, a := range ns {
				w := uint32(1)
				if distinct {
					w = rand.Uint32N(1<<31) + 1
				}
				s.load(a, loads[i])
				s.set(a, w)
				scores[a] = float64(loads[i]+1) / float64(w)
			}
			last := 0.0
			for range n {
				a := s.open()
				require.LessOrEqual(t, last, scores[a]*(1+1e-4), "%s; weights near each other are one", a)
				last = scores[a]
				s.view.Remove(s.members[a])
			}
			_, _, ok := s.view.Acquire()
			require.False(t, ok)
		})
	}
}

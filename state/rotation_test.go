package state_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("n%04d", i)
	}
	return all
}

// requireRotation plays serial calls: n endpoints are visited once per round,
// each round in the order of the first.
func requireRotation(s *site, n, rounds int) []string {
	s.Helper()
	first := s.round(n)
	sorted := slices.Sorted(slices.Values(first))
	require.Len(s, slices.Compact(sorted), n, "each once per round: %q", first)
	for range rounds {
		require.Equal(s, first, s.round(n))
	}
	return first
}

func TestSerialCallsRotate(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8, 9, 50} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newSite(t)
			s.add(names(n)...)
			requireRotation(s, n, 3)
		})
	}
}

// An update that says what was known, or that does not concern an endpoint's
// order, does not disturb it.
func TestRotationOutlastsUpdates(t *testing.T) {
	s := newSite(t)
	s.add(names(5)...)
	want := requireRotation(s, 5, 1)
	for _, a := range names(5) {
		s.set(a, 1)
	}
	require.Equal(t, want, s.round(5))
	s.list("other")
	s.roster.NewReadySet(1).Set(s.members["other"], 1, "other")
	require.Equal(t, want, s.round(5))
	s.remove("other")
	require.Equal(t, want, s.round(5))

	s.remove(want[2])
	want = slices.Delete(want, 2, 3)
	require.Equal(t, want, s.round(4), "the others keep their order")
}

func TestRotationSetTakesUpTheValue(t *testing.T) {
	s := newSite(t)
	s.add("a", "b")
	before := s.round(2)
	s.view.Set(s.members["a"], 1, "a, connected again")
	got := s.round(2)
	require.ElementsMatch(t, []string{"a, connected again", "b"}, got)
	require.Equal(t, slices.Index(before, "b"), slices.Index(got, "b"))
}

// Equals at a load above 0 rotate as idle ones do.
func TestRotationUnderLoad(t *testing.T) {
	s := newSite(t)
	s.add(names(7)...)
	s.openMany(3 * 7)
	requireRotation(s, 7, 3)
	s.end("n0000", 3)
	require.Equal(t, map[string]int{"n0000": 3}, s.openMany(3))
	requireRotation(s, 7, 3)
}

// Equals among busier endpoints rotate among themselves.
func TestRotationOfSomeEquals(t *testing.T) {
	s := newSite(t)
	s.add(names(6)...)
	s.openMany(6)
	for _, a := range names(3) {
		s.end(a, 1)
	}
	require.ElementsMatch(t, names(3), requireRotation(s, 3, 3))
}

// The one that waits longest is next: that is the one released first.
func TestRotationGoesByWaiting(t *testing.T) {
	s := newSite(t)
	s.add(names(5)...)
	s.openMany(5)
	want := []string{"n0003", "n0000", "n0004", "n0002", "n0001"}
	for _, a := range want {
		s.end(a, 1)
	}
	require.Equal(t, want, s.round(5))
}

// Equal scores of different weights are equals, too: at weight k with k−1 in
// flight each score is 1. Several sizes of the tournament over the weights.
func TestRotationAcrossWeights(t *testing.T) {
	for _, n := range []int{2, 3, 8, 9, 64, 65, 150} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newSite(t)
			s.list(names(n)...)
			for i, a := range names(n) {
				s.load(a, i)
			}
			for i, a := range names(n) {
				s.set(a, uint32(i+1))
			}
			requireRotation(s, n, 2)
		})
	}
}

// Several endpoints of each weight rotate with those of the others: a weight's
// score stays while its longest waiting endpoint becomes another.
func TestRotationAcrossWeightsWithSeveralEach(t *testing.T) {
	s := newSite(t)
	s.list(names(60)...)
	for i, a := range names(60) {
		w := i%12 + 1
		s.load(a, w-1)
		s.set(a, uint32(w))
	}
	requireRotation(s, 60, 3)
}

// Across weights, too, the one that waits longest is next. What each was last
// used for is another endpoint set's call.
func TestRotationAcrossWeightsGoesByWaiting(t *testing.T) {
	const n = 60
	s := newSite(t)
	other := newSiteOn(t, s.ledger)
	s.list(names(n)...)
	for i, a := range names(n) {
		w := i%12 + 1
		s.load(a, w-1)
		s.set(a, uint32(w))
	}
	other.list(names(n)...)
	want := names(n)
	for range 5 {
		rand.Shuffle(n, func(i, j int) { want[i], want[j] = want[j], want[i] })
		for _, a := range want {
			other.load(a, 1)
			other.end(a, 1)
		}
		require.Equal(t, want, s.round(n))
	}
}

// Equal rationals are equals: (load+1)/weight is 1/3 for each of these.
func TestRotationAcrossMultiplesOfAThird(t *testing.T) {
	s := newSite(t)
	s.list(names(60)...)
	for i, a := range names(60) {
		s.load(a, i)
		s.set(a, uint32(3*(i+1)))
	}
	requireRotation(s, 60, 2)
}

func TestRotationWeightOneAndThree(t *testing.T) {
	s := newSite(t)
	s.list("a", "b")
	s.load("b", 2)
	s.set("a", 1)
	s.set("b", 3)
	requireRotation(s, 2, 5)
}

func TestD27HeldStreamsSpreadEvenly(t *testing.T) {
	for _, n := range []int{5, 60} {
		s := newSite(t)
		s.add(names(n)...)
		for a, got := range s.openMany(10 * n) {
			require.Equal(t, 10, got, a)
		}
	}
}

func TestD28EqualsGetEqualShares(t *testing.T) {
	s := newSite(t)
	s.add("a", "b", "c")
	for range 2 {
		got := map[string]int{}
		for range 300 {
			got[s.call()]++
		}
		require.Equal(t, map[string]int{"a": 100, "b": 100, "c": 100}, got)
		s.list("d") // an update
		s.remove("d")
	}
}

func TestD31NoEqualIsSkipped(t *testing.T) {
	s := newSite(t)
	s.add(names(5)...)
	last := map[string]int{}
	for i := 1; i <= 50; i++ {
		a := s.call()
		require.LessOrEqual(t, i-last[a], 9, a)
		last[a] = i
	}
	require.Len(t, last, 5)
}

func TestD38IdleCallsGoToTheHeaviest(t *testing.T) {
	s := newSite(t)
	s.list("a", "b")
	s.set("a", 3)
	s.set("b", 1)
	for range 40 {
		require.Equal(t, "a", s.call())
	}
}

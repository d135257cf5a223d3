package scenario

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMisplacement(t *testing.T) {
	for _, c := range []struct {
		name string
		Placement
		want string
	}{
		{"the emptiest", Placement{5, "c", Loads("abc", 2, 2, 0)}, ""},
		{"one of the emptiest", Placement{1, "b", Loads("ab", 3, 3)}, ""},
		{"alone", Placement{1, "a", Loads("a", 9)}, ""},
		{"a fuller one", Placement{6, "a", Loads("abc", 2, 2, 1)}, "session 6 went to a, which held 2 while c held 1"},
		{"fuller by many", Placement{2, "b", Loads("ab", 0, 7)}, "session 2 went to b, which held 7 while a held 0"},
		{"one that left", Placement{3, "x", Loads("a", 1)}, "session 3 went to x, which is not in the list"},
	} {
		assert.Equal(t, c.want, c.Misplacement(), c.name)
	}
}

func TestTogetherFindsTheBestOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		loads []Load
		got   map[string]int
		wrong int
	}{
		{"level", Loads("ab", 0, 0), map[string]int{"a": 2, "b": 2}, 0},
		{"one may have one more", Loads("ab", 0, 0), map[string]int{"a": 3, "b": 2}, 0},
		{"two more", Loads("ab", 0, 0), map[string]int{"a": 4, "b": 2}, 1},
		{"levelled", Loads("abc", 4, 1, 0), map[string]int{"b": 2, "c": 3}, 0},
		{"all on the emptiest", Loads("abc", 4, 1, 0), map[string]int{"c": 5}, 4 - 1},
		{"none on the emptiest", Loads("ab", 0, 5), map[string]int{"b": 3}, 3},
		{"out of the list", Loads("ab", 0, 0), map[string]int{"a": 1, "x": 2}, 2},
	} {
		o := Outcome{Placements: bestOrder(7, c.loads, c.got)}
		assert.Len(t, o.Misplacements(), c.wrong, "%s: %v", c.name, o.Misplacements())
		assert.Equal(t, 7, o.Placements[0].Number, c.name)
	}
}

// Sessions that were opened together are in place if and only if none went where it is now fuller by two.
func TestTogetherIsFair(t *testing.T) {
	for range 5000 {
		loads, got := Loads("abcd"), map[string]int{}
		for i := range loads {
			loads[i].Sessions = rand.IntN(4)
		}
		for range 1 + rand.IntN(8) {
			got[loads[rand.IntN(4)].Host]++
		}
		after := slices.Clone(loads)
		for i := range after {
			after[i].Sessions += got[after[i].Host]
		}
		least := slices.MinFunc(after, byFewest).Sessions
		inPlace := !slices.ContainsFunc(after, func(l Load) bool { return got[l.Host] > 0 && l.Sessions-1 > least })
		wrong := Outcome{Placements: bestOrder(1, loads, got)}.Misplacements()
		require.Equal(t, inPlace, len(wrong) == 0, "%v got %v: %v", loads, got, wrong)
	}
}

package rows

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
)

func TestDeviations(t *testing.T) {
	s := scenario.OneToTwo()
	wrong := scenario.Placement{Number: 5, Host: "a", Loads: s.Before}
	o := scenario.Outcome{Before: s.Before, After: s.After}
	assert.Empty(t, countDeviations(o, s))
	assert.Empty(t, misplaced(o))
	o.After = scenario.Loads("ab", 5, 3)
	assert.Equal(t, []string{"servers held [5 3] after, exact gives [4 4]"}, countDeviations(o, s))
	o.Placements = []scenario.Placement{wrong, wrong, wrong}
	assert.Len(t, misplaced(o), 3)
	o.Placements = append(o.Placements, wrong, wrong)
	assert.Equal(t, "2 more sessions went to a server that did not hold the fewest", misplaced(o)[3])
}

func TestCountText(t *testing.T) {
	for want, loads := range map[string][]scenario.Load{
		"1/2/0/4": scenario.Loads("abcd", 1, 2, 0, 4),
		"5×7":     scenario.Loads("abcde", 7, 7, 7, 7, 7),
		"0…3":     scenario.Loads("abcde", 1, 2, 0, 3, 3),
	} {
		assert.Equal(t, want, countText(loads))
	}
}

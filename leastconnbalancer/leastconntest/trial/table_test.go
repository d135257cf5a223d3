package trial

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTableAlignsByCharacters(t *testing.T) {
	table := Table{
		Head: []Block{{"row"}, {"first", "detail"}, {"second"}},
		Rows: [][]Block{
			{{"one", "  more"}, {"1 → 2"}, {"✓"}},
			{{"two"}, {"3"}, {"✗ 4", "x"}},
		},
	}
	assert.Equal(t, strings.Join([]string{
		"row      first    second",
		"         detail",
		"━━━━━━━━━━━━━━━━━━━━━━━━",
		"one      1 → 2    ✓",
		"  more",
		"────────────────────────",
		"two      3        ✗ 4",
		"                  x",
		"━━━━━━━━━━━━━━━━━━━━━━━━",
		"",
	}, "\n"), table.String())

	table.Dense = true
	assert.Equal(t, strings.Join([]string{
		"row     first   second",
		"        detail",
		"━━━━━━━━━━━━━━━━━━━━━━",
		"one     1 → 2   ✓",
		"  more",
		"two     3       ✗ 4",
		"                x",
		"━━━━━━━━━━━━━━━━━━━━━━",
		"",
	}, "\n"), table.String())
}

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTableAlignsByCharacters(t *testing.T) {
	got := table{
		head: []block{{"row"}, {"first", "detail"}, {"second"}},
		rows: [][]block{
			{{"one", "  more"}, {"1 → 2"}, {"✓"}},
			{{"two"}, {"3"}, {"✗ 4", "x"}},
		},
	}.String()
	want := strings.Join([]string{
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
	}, "\n")
	assert.Equal(t, want, got)
}

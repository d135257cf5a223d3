package main

import (
	"strconv"
	"strings"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
)

const pictureLegend = "Sessions on a/b/c before → after the new ones opened, and where those went. ✓: each session of the row went to\n" +
	"a server that held the fewest; ✗ n: n of them did not. least_request: grpc-go's least_request_experimental.\n" +
	"The servers are this process's own, on TCP loopback.\n"

// pictureRows are the scenarios that tell most in the fewest rows.
func pictureRows() []row {
	var rows []row
	for _, s := range scenario.Basic() {
		rows = append(rows, sessionRow(s))
	}
	return rows
}

// picture is the table with where the new sessions went.
func (r report) picture() string {
	t := scenario.Table{Head: []scenario.Block{{"scenario"}}}
	for _, p := range r.policies {
		t.Head = append(t.Head, scenario.Block{p.Label, p.Detail})
	}
	for i, row := range r.rows {
		line := []scenario.Block{{row.name, "  " + row.change}}
		for _, c := range r.cells[i] {
			line = append(line, c.block())
		}
		t.Rows = append(t.Rows, line)
	}
	return "\n" + t.String() + pictureLegend + "\n" + strings.Join(r.verdict(), "\n") + "\n"
}

// block is the cell as the picture shows it.
func (c cell) block() scenario.Block {
	s, ok := c.got.(sessions)
	if c.err != nil || !ok {
		return scenario.Block{"failed"}
	}
	before, after := scenario.Counts(s.before), scenario.Counts(s.after)
	opened := make([]int, len(after))
	for i := range opened {
		opened[i] = after[i] - before[i]
	}
	mark := "✓"
	switch {
	case s.misplaced > 0:
		mark = "✗ " + strconv.Itoa(s.misplaced)
	case !c.right():
		mark = "✗"
	}
	return scenario.Block{slashed(before) + " → " + slashed(after), "new " + slashed(opened) + "  " + mark}
}

// slashed is counts with slashes between them.
func slashed(counts []int) string {
	texts := make([]string, len(counts))
	for i, c := range counts {
		texts[i] = strconv.Itoa(c)
	}
	return strings.Join(texts, "/")
}

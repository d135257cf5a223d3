package main

import (
	"strconv"
	"strings"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/interop/scenarios/rows"
)

const pictureLegend = "Sessions on a/b/c before → after the new ones opened, and where those went. ✓: each session of the row went to\n" +
	"a server that held the fewest; ✗ n: n of them did not. least_request: grpc-go's least_request_experimental.\n" +
	"The servers are this process's own, on TCP loopback.\n"

// picture is the table with where the new sessions went.
func (r report) picture() string {
	t := scenario.Table{Head: []scenario.Block{{"scenario"}}}
	for _, p := range r.policies {
		t.Head = append(t.Head, scenario.Block{p.Label, p.Detail})
	}
	for i, row := range r.rows {
		line := []scenario.Block{{row.Name, "  " + row.Change}}
		for _, c := range r.cells[i] {
			line = append(line, cellBlock(c))
		}
		t.Rows = append(t.Rows, line)
	}
	return "\n" + t.String() + pictureLegend + "\n" + strings.Join(r.verdict(), "\n") + "\n"
}

// cellBlock is the cell as the picture shows it.
func cellBlock(c rows.Cell) scenario.Block {
	s, ok := c.Got.(rows.Sessions)
	if c.Err != nil || !ok {
		return scenario.Block{"failed"}
	}
	before, after := scenario.Counts(s.Before), scenario.Counts(s.After)
	opened := make([]int, len(after))
	for i := range opened {
		opened[i] = after[i] - before[i]
	}
	mark := "✓"
	switch {
	case s.Misplaced > 0:
		mark = "✗ " + strconv.Itoa(s.Misplaced)
	case !c.Right():
		mark = "✗"
	}
	return scenario.Block{rows.Slashed(before) + " → " + rows.Slashed(after), "new " + rows.Slashed(opened) + "  " + mark}
}

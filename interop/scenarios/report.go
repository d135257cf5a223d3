package main

import (
	"fmt"
	"strings"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
)

// report is what all rows came to.
type report struct {
	policies []trial.Policy
	rows     []row
	cells    [][]cell // by row, then by policy
}

func newReport(policies []trial.Policy, rows []row) report {
	r := report{policies: policies, rows: rows, cells: make([][]cell, len(rows))}
	for i := range rows {
		r.cells[i] = make([]cell, len(policies))
	}
	return r
}

const legend = "exact: sessions by server before → after the last ones opened; policies: after. 10×100: each of ten has 100;\n" +
	"93…108: fewest and most of many. (n): max − min. ✓: every session went to a server that held the fewest then;\n" +
	"✗: some did not, even if the counts are level in the end.\n"

// render is the table, what it needs to be read, and the verdict.
func (r report) render() string {
	t := trial.Table{Head: []trial.Block{{"scenario"}, {"exact"}}, Dense: true}
	for _, p := range r.policies {
		head := trial.Block{p.Label}
		if p.Choices > 0 {
			head = append(head, fmt.Sprintf("%d choices", p.Choices))
		}
		t.Head = append(t.Head, head)
	}
	for i, row := range r.rows {
		line := []trial.Block{{row.name}, {row.want}}
		for _, c := range r.cells[i] {
			line = append(line, trial.Block{c.text()})
		}
		t.Rows = append(t.Rows, line)
	}
	return "\n" + t.String() + legend + "\n" + strings.Join(r.verdict(), "\n") + "\n"
}

// text is the cell as the table shows it.
func (c cell) text() string {
	switch {
	case c.err != nil:
		return "failed"
	case c.right():
		return c.gave.String() + " ✓"
	default:
		return c.gave.String() + " ✗"
	}
}

// verdict names what could not be played and where judged policies are off, and counts where they are right.
func (r report) verdict() []string {
	var lines []string
	right := make(map[trial.Policy]int)
	r.each(func(p trial.Policy, row row, c cell) {
		if c.err != nil {
			lines = append(lines, fmt.Sprintf("FAILED %s, %s: %v", p.ID(), row.name, c.err))
		}
		if c.right() {
			right[p]++
		}
		if p.Judged {
			for _, off := range c.off {
				lines = append(lines, fmt.Sprintf("OFF %s, %s: %s", p.ID(), row.name, off))
			}
		}
	})
	for _, p := range r.policies {
		lines = append(lines, fmt.Sprintf("%s: exact in %d of %d scenarios", p.ID(), right[p], len(r.rows)))
	}
	return lines
}

// status is the exit status.
func (r report) status() int {
	status := exitExact
	r.each(func(p trial.Policy, _ row, c cell) {
		if p.Judged && len(c.off) > 0 {
			status = exitOff
		}
		if c.err != nil && status == exitExact {
			status = exitFailed
		}
	})
	return status
}

func (r report) each(do func(trial.Policy, row, cell)) {
	for i, cells := range r.cells {
		for p, c := range cells {
			do(r.policies[p], r.rows[i], c)
		}
	}
}

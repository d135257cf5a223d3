package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/interop/scenarios/rows"
)

// report is what all rows came to.
type report struct {
	policies []scenario.Policy
	rows     []rows.Row
	cells    [][]rows.Cell // by row, then by policy
}

func newReport(policies []scenario.Policy, table []rows.Row) report {
	r := report{policies: policies, rows: table, cells: make([][]rows.Cell, len(table))}
	for i := range table {
		r.cells[i] = make([]rows.Cell, len(policies))
	}
	return r
}

const legend = "exact: sessions by server before → after the last ones opened; policies: after. 10×100: each of ten has 100;\n" +
	"93…108: fewest and most of many. (n): max − min. ✓: every session went to a server that held the fewest then;\n" +
	"✗: some did not, even if the counts are level in the end. moves: in the end, of sessions that move when told.\n" +
	"cv: standard deviation over mean of sessions by server, of many clients; least_conn has servers report.\n" +
	"long prompts: what the calls on each server cost together; least_conn is told by WithCost.\n"

// render is the table, what it needs to be read, and the verdict.
func (r report) render() string {
	t := scenario.Table{Head: []scenario.Block{{"scenario"}, {"exact"}}, Dense: true}
	for _, p := range r.policies {
		head := scenario.Block{p.Label}
		if p.Choices > 0 {
			head = append(head, fmt.Sprintf("%d choices", p.Choices))
		}
		t.Head = append(t.Head, head)
	}
	for i, row := range r.rows {
		line := []scenario.Block{{row.Name}, {row.Want}}
		for _, c := range r.cells[i] {
			line = append(line, scenario.Block{cellText(c)})
		}
		t.Rows = append(t.Rows, line)
	}
	return "\n" + t.String() + legend + "\n" + strings.Join(r.verdict(), "\n") + "\n"
}

// cellText is the cell as the table shows it.
func cellText(c rows.Cell) string {
	switch {
	case c.Err != nil:
		return "failed"
	case c.Right():
		return c.Got.String() + " ✓"
	default:
		return c.Got.String() + " ✗"
	}
}

// verdict names what could not be played and where judged policies are off, and counts where they are right.
func (r report) verdict() []string {
	var lines []string
	right := make(map[scenario.Policy]int)
	r.each(func(p scenario.Policy, row rows.Row, c rows.Cell) {
		if c.Err != nil {
			lines = append(lines, fmt.Sprintf("FAILED %s, %s: %v", p.ID(), row.Name, c.Err))
		}
		if c.Right() {
			right[p]++
		}
		if p.Judged {
			for _, off := range c.Deviations {
				lines = append(lines, fmt.Sprintf("OFF %s, %s: %s", p.ID(), row.Name, off))
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
	r.each(func(p scenario.Policy, _ rows.Row, c rows.Cell) {
		if p.Judged && len(c.Deviations) > 0 {
			status = exitDeviates
		}
		if c.Err != nil && status == exitExact {
			status = exitFailed
		}
	})
	return status
}

func (r report) each(do func(scenario.Policy, rows.Row, rows.Cell)) {
	for i, cells := range r.cells {
		for p, c := range cells {
			do(r.policies[p], r.rows[i], c)
		}
	}
}

// What -json prints. Names stay as they are; there may be more.
type (
	jsonReport struct {
		Status    string         `json:"status"` // "exact", "off" or "failed", for exit statuses 0, 1 and 2
		Policies  []jsonPolicy   `json:"policies"`
		Scenarios []jsonScenario `json:"scenarios"`
	}
	jsonPolicy struct {
		ID          string `json:"id"` // as -policy takes it
		Name        string `json:"name"`
		ChoiceCount int    `json:"choiceCount,omitempty"`
		Judged      bool   `json:"judged"` // decides the status
	}
	jsonScenario struct {
		Name    string       `json:"name"`
		Change  string       `json:"change"`
		Measure string       `json:"measure"` // what exact and gave are; it says which fields they have
		Exact   rows.Figures `json:"exact"`
		Results []jsonResult `json:"results"` // in the order of policies
	}
	jsonResult struct {
		Policy string       `json:"policy"` // an id
		Right  bool         `json:"right"`  // it gave what exact gives
		Gave   rows.Figures `json:"gave"`   // null with an error
		Off    []string     `json:"off"`    // what is not as exact has it
		Error  string       `json:"error,omitempty"`
	}
)

// encode is the report as -json prints it.
func (r report) encode() ([]byte, error) {
	j := jsonReport{Status: [...]string{exitExact: "exact", exitDeviates: "off", exitFailed: "failed"}[r.status()]}
	for _, p := range r.policies {
		j.Policies = append(j.Policies, jsonPolicy{ID: p.ID(), Name: p.Name, ChoiceCount: p.Choices, Judged: p.Judged})
	}
	for i, row := range r.rows {
		s := jsonScenario{Name: row.Name, Change: row.Change, Measure: row.Measure, Exact: row.Exact}
		for p, c := range r.cells[i] {
			result := jsonResult{Policy: r.policies[p].ID(), Right: c.Right(), Gave: c.Got, Off: c.Deviations}
			if result.Off == nil {
				result.Off = []string{}
			}
			if c.Err != nil {
				result.Error = c.Err.Error()
			}
			s.Results = append(s.Results, result)
		}
		j.Scenarios = append(j.Scenarios, s)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(j)
	return b.Bytes(), err
}

package main

import (
	"bytes"
	"encoding/json"
)

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
		Exact   figures      `json:"exact"`
		Results []jsonResult `json:"results"` // in the order of policies
	}
	jsonResult struct {
		Policy string   `json:"policy"` // an id
		Right  bool     `json:"right"`  // it gave what exact gives
		Gave   figures  `json:"gave"`   // null with an error
		Off    []string `json:"off"`    // what is not as exact has it
		Error  string   `json:"error,omitempty"`
	}
)

// encode is the report as -json prints it.
func (r report) encode() ([]byte, error) {
	j := jsonReport{Status: [...]string{exitExact: "exact", exitOff: "off", exitFailed: "failed"}[r.status()]}
	for _, p := range r.policies {
		j.Policies = append(j.Policies, jsonPolicy{ID: p.ID(), Name: p.Name, ChoiceCount: p.Choices, Judged: p.Judged})
	}
	for i, row := range r.rows {
		s := jsonScenario{Name: row.name, Change: row.change, Measure: row.measure, Exact: row.exact}
		for p, c := range r.cells[i] {
			result := jsonResult{Policy: r.policies[p].ID(), Right: c.right(), Gave: c.gave, Off: c.off}
			if result.Off == nil {
				result.Off = []string{}
			}
			if c.err != nil {
				result.Error = c.err.Error()
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

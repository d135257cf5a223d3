package main

import (
	"fmt"
	"strings"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
)

// report is what all trials came to.
type report struct {
	hosts     []trial.Host
	policies  []trial.Policy
	scenarios []trial.Scenario
	cells     [][]cell // by scenario, then by policy
}

func newReport(hosts []trial.Host, policies []trial.Policy, scenarios []trial.Scenario) report {
	r := report{hosts: hosts, policies: policies, scenarios: scenarios, cells: make([][]cell, len(scenarios))}
	for s := range scenarios {
		r.cells[s] = make([]cell, len(policies))
	}
	return r
}

const (
	legend = "Sessions on a/b/c before → after the new ones opened, and where those went. ✓: each session of the row went to\n" +
		"a server that held the fewest; ✗ n: n of them did not. least_request: grpc-go's least_request_experimental.\n"
	notRun = "Not run: ageing. Start the first server with -max-age and tell the client the same -max-age; see -h.\n"
)

// render is the table, what it needs to be read, and the verdict.
func (r report) render() string {
	t := trial.Table{Head: []trial.Block{{"scenario"}}}
	for _, p := range r.policies {
		t.Head = append(t.Head, trial.Block{p.Label, p.Detail})
	}
	skipped := false
	for s, scenario := range r.scenarios {
		row := []trial.Block{{scenario.Name, "  " + scenario.Change}}
		for _, c := range r.cells[s] {
			row = append(row, c.lines())
			skipped = skipped || c.skipped
		}
		t.Rows = append(t.Rows, row)
	}
	text := "\n" + t.String() + legend + r.where()
	if skipped {
		text += notRun
	}
	return text + "\n" + strings.Join(r.verdict(), "\n") + "\n"
}

// where says which servers a, b and c are.
func (r report) where() string {
	var servers []string
	for i, h := range r.hosts {
		if h.Node != nil {
			return "The servers are this process's own, on TCP loopback.\n"
		}
		servers = append(servers, fmt.Sprintf("%c is %s at %s", 'a'+i, h.Name, h.Endpoint.Addresses[0].Addr))
	}
	return "Servers: " + strings.Join(servers, ", ") + ".\n"
}

// verdict is one line if all went well, and else names what did not.
func (r report) verdict() []string {
	var lines []string
	r.each(func(p trial.Policy, s trial.Scenario, c cell) {
		if c.Err != nil {
			lines = append(lines, fmt.Sprintf("FAILED %s, %s: %v", p.Title(), s.Name, c.Err))
		}
		if !p.Judged {
			return
		}
		for _, m := range c.Misplacements() {
			lines = append(lines, fmt.Sprintf("MISPLACED by %s, %s: %s", p.Title(), s.Name, m))
		}
	})
	for _, p := range r.policies {
		if p.Judged {
			lines = append(lines, r.score(p))
		}
	}
	return lines
}

// score says how many of a policy's sessions went right.
func (r report) score(judged trial.Policy) string {
	placed, wrong := 0, 0
	r.each(func(p trial.Policy, _ trial.Scenario, c cell) {
		if p == judged {
			placed += len(c.Placements)
			wrong += len(c.Misplacements())
		}
	})
	return fmt.Sprintf("%s put %d of %d sessions on a server that held the fewest.", judged.Title(), placed-wrong, placed)
}

// status is the exit status.
func (r report) status() int {
	status := exitPlaced
	r.each(func(p trial.Policy, _ trial.Scenario, c cell) {
		if p.Judged && len(c.Misplacements()) > 0 {
			status = exitMisplaced
		}
		if c.Err != nil && status == exitPlaced {
			status = exitFailed
		}
	})
	return status
}

func (r report) each(do func(trial.Policy, trial.Scenario, cell)) {
	for s, row := range r.cells {
		for p, c := range row {
			do(r.policies[p], r.scenarios[s], c)
		}
	}
}

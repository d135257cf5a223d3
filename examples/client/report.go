package main

import (
	"fmt"
	"strings"
)

// report is what all trials came to.
type report struct {
	hosts     []host
	policies  []policy
	scenarios []scenario
	outcomes  [][]outcome // by scenario, then by policy
}

func newReport(hosts []host, policies []policy, scenarios []scenario) report {
	r := report{hosts: hosts, policies: policies, scenarios: scenarios, outcomes: make([][]outcome, len(scenarios))}
	for s := range scenarios {
		r.outcomes[s] = make([]outcome, len(policies))
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
	t := table{head: []block{{"scenario"}}}
	for _, p := range r.policies {
		t.head = append(t.head, block{p.name, p.detail})
	}
	skipped := false
	for s, scenario := range r.scenarios {
		row := []block{{scenario.name, "  " + scenario.change}}
		for _, o := range r.outcomes[s] {
			row = append(row, o.lines())
			skipped = skipped || o.skipped
		}
		t.rows = append(t.rows, row)
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
		if h.node != nil {
			return "The servers are this process's own, on TCP loopback.\n"
		}
		servers = append(servers, fmt.Sprintf("%c is %s at %s", 'a'+i, h.name, h.endpoint.Addresses[0].Addr))
	}
	return "Servers: " + strings.Join(servers, ", ") + ".\n"
}

// verdict is one line if all went well, and else names what did not.
func (r report) verdict() []string {
	var lines []string
	r.each(func(p policy, s scenario, o outcome) {
		if o.err != nil {
			lines = append(lines, fmt.Sprintf("FAILED %s, %s: %v", p.title(), s.name, o.err))
		}
		if !p.judged {
			return
		}
		for _, m := range o.misplacements() {
			lines = append(lines, fmt.Sprintf("MISPLACED by %s, %s: %s", p.title(), s.name, m))
		}
	})
	for _, p := range r.policies {
		if p.judged {
			lines = append(lines, r.score(p))
		}
	}
	return lines
}

// score says how many of a policy's sessions went right.
func (r report) score(judged policy) string {
	placed, wrong := 0, 0
	r.each(func(p policy, _ scenario, o outcome) {
		if p == judged {
			placed += len(o.placements)
			wrong += len(o.misplacements())
		}
	})
	return fmt.Sprintf("%s put %d of %d sessions on a server that held the fewest.", judged.title(), placed-wrong, placed)
}

// status is the exit status.
func (r report) status() int {
	status := exitPlaced
	r.each(func(p policy, _ scenario, o outcome) {
		if p.judged && len(o.misplacements()) > 0 {
			status = exitMisplaced
		}
		if o.err != nil && status == exitPlaced {
			status = exitFailed
		}
	})
	return status
}

func (r report) each(do func(policy, scenario, outcome)) {
	for s, row := range r.outcomes {
		for p, o := range row {
			do(r.policies[p], r.scenarios[s], o)
		}
	}
}

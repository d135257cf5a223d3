// Package rows is the table of scenarios: what each policy is to make of servers and channels that come, go, age, fail and
// return. Its rows are played with channels whose resolver is told what to list, or below something else that tells them,
// as a control plane does.
package rows

import (
	"context"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Row is a line of the table: what happens, and how is measured what a policy makes of it. Rows of different measures
// stand in one table, each with figures of its own kind.
type Row struct {
	Name    string
	Change  string  // what happens, in a few words
	Measure string  // what the figures are
	Want    string  // exact's figures, as the table shows them
	Exact   Figures // what exact least-connections gives
	Bounded bool    // what it gives varies: a policy may be right that gives something near exact
	Waits   bool    // most of the time: it may be played beside others
	Play    func(ctx context.Context, p Policy) Cell
}

// Policy is a policy that plays rows.
type Policy = scenario.Policy

// LeastConn is the policy that is judged, with the lists of its channels brought by sources; nil: by their own resolvers.
func LeastConn(sources leastconntest.Sources) Policy {
	policies := scenario.Policies()
	p := policies[len(policies)-1]
	if sources != nil {
		p.Below = &sources
	}
	return p
}

// Figures are what a policy gave in a row. They are encoded as a JSON object, and String is what the table shows.
type Figures interface{ String() string }

// Cell is a row with one policy.
type Cell struct {
	Got        Figures  // nil if it could not be played to its end
	Deviations []string // what is not as exact has it; empty if the policy was right
	Err        error    // why it could not be played to its end
}

// Right tells whether the policy gave what exact gives.
func (c Cell) Right() bool { return c.Err == nil && len(c.Deviations) == 0 }

// Timeout bounds one policy's play of one row. A second is enough, as a rule, and 20 where sessions move; a busy machine
// may take several times as long.
const Timeout = 3 * time.Minute

// All is all rows.
func All() []Row {
	var rows []Row
	for _, s := range slices.Concat(joins(), leaves(), faults(), channels()) {
		rows = append(rows, OfSessions(s))
	}
	rows = append(rows, failingRow(), fullRow(), newcomerRow(), startupRow(), promptsRow(), fewRow())
	for _, r := range moveRows() {
		r.Waits = true
		rows = append(rows, r)
	}
	return rows
}

// Short is the rows that tell most in the least room.
func Short() []Row {
	var rows []Row
	for _, s := range scenario.Basic() {
		rows = append(rows, OfSessions(s))
	}
	return rows
}

package main

import (
	"context"
	"slices"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
)

// row is a line of the table: what happens, and how is measured what a policy makes of it. Rows of different measures
// stand in one table, each with figures of its own kind.
type row struct {
	name    string
	change  string  // what happens, in a few words
	measure string  // what the figures are
	want    string  // exact's figures, as the table shows them
	exact   figures // what exact least-connections gives
	waits   bool    // most of the time: it may be played beside others
	play    func(ctx context.Context, p scenario.Policy) cell
}

// figures are what a policy gave in a row. They are encoded as a JSON object, and String is what the table shows.
type figures interface{ String() string }

// cell is a row with one policy.
type cell struct {
	got        figures  // nil if it could not be played to its end
	deviations []string // what is not as exact has it; empty if the policy was right
	err        error    // why it could not be played to its end
}

// right tells whether the policy gave what exact gives.
func (c cell) right() bool { return c.err == nil && len(c.deviations) == 0 }

// table is all rows.
func table() []row {
	var rows []row
	for _, s := range slices.Concat(joins(), leaves(), faults(), channels()) {
		rows = append(rows, sessionRow(s))
	}
	rows = append(rows, failingRow(), fullRow(), newcomerRow(), startupRow(), promptsRow(), fewRow())
	for _, r := range moveRows() {
		r.waits = true
		rows = append(rows, r)
	}
	return rows
}

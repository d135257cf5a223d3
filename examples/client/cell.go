package main

import (
	"strconv"
	"strings"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
)

// cell is what the table says of a scenario with a policy.
type cell struct {
	trial.Outcome
	skipped bool
}

// lines is the cell as it is printed.
func (c cell) lines() trial.Block {
	switch {
	case c.skipped:
		return trial.Block{"not run"}
	case c.Err != nil:
		return trial.Block{"failed"}
	}
	before, after := trial.Counts(c.Before), trial.Counts(c.After)
	fresh := make([]int, len(after))
	for i := range fresh {
		fresh[i] = after[i] - before[i]
	}
	mark := "✓"
	if n := len(c.Misplacements()); n > 0 {
		mark = "✗ " + strconv.Itoa(n)
	}
	return trial.Block{slashed(before) + " → " + slashed(after), "new " + slashed(fresh) + "  " + mark}
}

func slashed(counts []int) string {
	s := make([]string, len(counts))
	for i, c := range counts {
		s[i] = strconv.Itoa(c)
	}
	return strings.Join(s, "/")
}

package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
)

var (
	right = trial.Placement{Number: 5, Host: "c", Loads: trial.At("abc", 2, 2, 0)}
	wrong = trial.Placement{Number: 6, Host: "a", Loads: trial.At("abc", 2, 2, 1)}
)

// placed is a cell with sessions on the first three hosts.
func placed(before, after []int, placements ...trial.Placement) cell {
	return cell{Outcome: trial.Outcome{Before: trial.At("abc", before...), After: trial.At("abc", after...), Placements: placements}}
}

// reportOf has one scenario, a policy that is not judged and one that is.
func reportOf(free, judged cell) report {
	r := newReport([]trial.Host{{Name: "n1", Endpoint: resolver.Endpoint{Addresses: []resolver.Address{{Addr: "127.0.0.1:1"}}}}},
		[]trial.Policy{{Label: "free"}, {Label: "exact", Detail: "2 choices", Judged: true}}, []trial.Scenario{{Name: "scale-out"}})
	r.cells[0][0], r.cells[0][1] = free, judged
	return r
}

func TestVerdict(t *testing.T) {
	good := placed([]int{2, 2, 0}, []int{2, 2, 1}, right)
	bad := placed([]int{2, 2, 0}, []int{3, 2, 1}, right, wrong)
	failed := cell{Outcome: trial.Outcome{Err: errors.New("no answer")}}
	const all = "exact with 2 choices put 1 of 1 sessions on a server that held the fewest."
	for _, c := range []struct {
		name         string
		free, judged cell
		status       int
		verdict      []string
	}{
		{"all well", good, good, exitPlaced, []string{all}},
		{"only the judged policy counts", bad, good, exitPlaced, []string{all}},
		{"misplaced", good, bad, exitMisplaced, []string{
			"MISPLACED by exact with 2 choices, scale-out: session 6 went to a, which held 2 while c held 1",
			"exact with 2 choices put 1 of 2 sessions on a server that held the fewest.",
		}},
		{"misplaced wins over failed", failed, bad, exitMisplaced, []string{
			"FAILED free, scale-out: no answer",
			"MISPLACED by exact with 2 choices, scale-out: session 6 went to a, which held 2 while c held 1",
			"exact with 2 choices put 1 of 2 sessions on a server that held the fewest.",
		}},
		{"failed", good, failed, exitFailed, []string{
			"FAILED exact with 2 choices, scale-out: no answer",
			"exact with 2 choices put 0 of 0 sessions on a server that held the fewest.",
		}},
	} {
		r := reportOf(c.free, c.judged)
		assert.Equal(t, c.status, r.status(), c.name)
		assert.Equal(t, c.verdict, r.verdict(), c.name)
	}
}

func TestRender(t *testing.T) {
	bad := placed([]int{2, 2, 0}, []int{3, 2, 1}, right, wrong)
	text := reportOf(cell{skipped: true}, bad).render()
	assert.Contains(t, text, "2/2/0 → 3/2/1")
	assert.Contains(t, text, "new 1/0/1  ✗ 1")
	assert.Contains(t, text, "not run")
	assert.Contains(t, text, notRun)
	assert.Contains(t, text, "Servers: a is n1 at 127.0.0.1:1.")
	assert.NotContains(t, reportOf(bad, bad).render(), notRun)
}

// The widest table there can be still fits a terminal of 110 columns.
func TestTableFits(t *testing.T) {
	r := newReport(nil, trial.Policies(), trial.Basics())
	for s, scenario := range r.scenarios {
		for p := range r.policies {
			slots := "abc"[:scenario.Hosts]
			before, after := trial.At(slots), trial.At(slots)
			if scenario.Hosts == 2 {
				before, after = trial.At(slots, 10, 0), trial.At(slots, 12, 12)
			}
			r.cells[s][p].Outcome = trial.Outcome{Before: before, After: after, Placements: slices.Repeat([]trial.Placement{wrong}, 9)}
		}
	}
	text, _, _ := strings.Cut(r.render(), "\n\n")
	for _, line := range strings.Split(text, "\n") {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 110, line)
	}
}

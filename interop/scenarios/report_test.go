package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
)

// share is figures of another measure: calls that failed.
type share struct {
	Failed int `json:"failed"`
	Calls  int `json:"calls"`
}

func (s share) String() string { return fmt.Sprintf("%d of %d", s.Failed, s.Calls) }

var (
	right  = cell{got: sessions{before: scenario.Loads("ab", 4, 0), after: scenario.Loads("ab", 4, 4)}}
	off    = cell{got: sessions{before: scenario.Loads("ab", 4, 0), after: scenario.Loads("ab", 5, 3)}, deviations: []string{"session 6 <wrong>"}}
	failed = cell{err: errors.New("no answer")}
)

// reportOf has a row of sessions and one of another measure, with a policy that is not judged and one that is.
func reportOf(free, judged cell) report {
	rows := []row{
		sessionRow(scenario.OneToTwo()),
		{name: "one fails", change: "a fails all calls", measure: "failed calls", want: "few", exact: share{0, 100}},
	}
	policies := scenario.Policies()[2:]
	r := newReport(policies, rows)
	r.cells[0] = []cell{free, judged}
	r.cells[1] = []cell{{got: share{50, 100}, deviations: []string{"too many failed"}}, {got: share{0, 100}}}
	return r
}

func TestStatusAndVerdict(t *testing.T) {
	const (
		free10  = "least_request_experimental/10: exact in 0 of 2 scenarios"
		offLine = "OFF least_conn, one to two: session 6 <wrong>"
	)
	for _, c := range []struct {
		name         string
		free, judged cell
		status       int
		verdict      []string
	}{
		{"only the judged policy counts", off, right, exitExact, []string{free10, "least_conn: exact in 2 of 2 scenarios"}},
		{"off", right, off, exitDeviates, []string{
			offLine, "least_request_experimental/10: exact in 1 of 2 scenarios", "least_conn: exact in 1 of 2 scenarios",
		}},
		{"off wins over failed", failed, off, exitDeviates, []string{
			"FAILED least_request_experimental/10, one to two: no answer", offLine, free10, "least_conn: exact in 1 of 2 scenarios",
		}},
		{"any policy may fail", failed, right, exitFailed, []string{
			"FAILED least_request_experimental/10, one to two: no answer", free10, "least_conn: exact in 2 of 2 scenarios",
		}},
		{"off before it failed", off, cell{err: failed.err, deviations: off.deviations}, exitDeviates, []string{
			"FAILED least_conn, one to two: no answer", offLine, free10, "least_conn: exact in 1 of 2 scenarios",
		}},
	} {
		r := reportOf(c.free, c.judged)
		assert.Equal(t, c.status, r.status(), c.name)
		assert.Equal(t, c.verdict, r.verdict(), c.name)
	}
}

func TestRender(t *testing.T) {
	table, _, _ := strings.Cut(reportOf(off, right).render(), "exact: ")
	assert.Equal(t, strings.Join([]string{
		"",
		"scenario    exact          least_request  least_conn",
		"                           10 choices",
		"━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━",
		"one to two  4/0 → 4/4 (0)  5/3 (2) ✗      4/4 (0) ✓",
		"one fails   few            50 of 100 ✗    0 of 100 ✓",
		"━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━",
		"",
	}, "\n"), table)
	assert.Contains(t, reportOf(failed, right).render(), "  failed ")
}

func TestPicture(t *testing.T) {
	r := newReport(scenario.Policies()[2:], []row{sessionRow(scenario.OneToTwo())})
	misplaced := off
	misplaced.got = sessions{before: scenario.Loads("ab", 4, 0), after: scenario.Loads("ab", 5, 3), misplaced: 1}
	r.cells[0] = []cell{misplaced, right}
	table, _, _ := strings.Cut(r.picture(), "Sessions on")
	assert.Equal(t, strings.Join([]string{
		"",
		"scenario              least_request   least_conn",
		"                      10 choices",
		"━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━",
		"one to two            4/0 → 5/3       4/0 → 4/4",
		"  b joins a, 4 more   new 1/3  ✗ 1    new 0/4  ✓",
		"━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━",
		"",
	}, "\n"), table)
	r.cells[0][0] = failed
	assert.Contains(t, r.picture(), "   failed ")
}

// The names and values that programs read.
func TestJSONShape(t *testing.T) {
	want, err := os.ReadFile("testdata/report.json")
	require.NoError(t, err)
	got, err := reportOf(failed, off).encode()
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
	require.True(t, json.Valid(got))
}

func TestDeviations(t *testing.T) {
	s := scenario.OneToTwo()
	wrong := scenario.Placement{Number: 5, Host: "a", Loads: s.Before}
	o := scenario.Outcome{Before: s.Before, After: s.After}
	assert.Empty(t, countDeviations(o, s))
	assert.Empty(t, misplaced(o))
	o.After = scenario.Loads("ab", 5, 3)
	assert.Equal(t, []string{"servers held [5 3] after, exact gives [4 4]"}, countDeviations(o, s))
	o.Placements = []scenario.Placement{wrong, wrong, wrong}
	assert.Len(t, misplaced(o), 3)
	o.Placements = append(o.Placements, wrong, wrong)
	assert.Equal(t, "2 more sessions went to a server that did not hold the fewest", misplaced(o)[3])
}

func TestCountText(t *testing.T) {
	for want, loads := range map[string][]scenario.Load{
		"1/2/0/4": scenario.Loads("abcd", 1, 2, 0, 4),
		"5×7":     scenario.Loads("abcde", 7, 7, 7, 7, 7),
		"0…3":     scenario.Loads("abcde", 1, 2, 0, 3, 3),
	} {
		assert.Equal(t, want, countText(loads))
	}
}

// The rows have names of their own, and -h describes each.
func TestTable(t *testing.T) {
	names := make(map[string]bool)
	for _, r := range table() {
		assert.False(t, names[r.name], r.name)
		names[r.name] = true
		assert.NotEmpty(t, r.change, r.name)
		assert.Contains(t, usage(), r.change)
		assert.Less(t, utf8.RuneCountInString(r.name), 24, r.name)
	}
}

// A table with figures as wide as may be still fits 110 columns.
func TestTableFits(t *testing.T) {
	r := newReport(scenario.Policies(), table())
	picture := newReport(scenario.Policies(), pictureRows())
	for p := range r.policies {
		for i := range r.rows {
			r.cells[i][p] = cell{got: sessions{after: scenario.Loads("abcd", 6, 6, 10, 2)}, deviations: []string{"wrong"}}
		}
		for i, row := range picture.rows {
			got := row.exact.(sessions)
			got.misplaced = 9
			picture.cells[i][p] = cell{got: got, deviations: []string{"wrong"}}
		}
	}
	for line := range strings.Lines(r.render() + picture.picture()) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 111, line)
	}
}

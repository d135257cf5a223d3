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
	"github.com/leastconn/grpc-leastconn/interop/scenarios/rows"
)

// share is figures of another measure: calls that failed.
type share struct {
	Failed int `json:"failed"`
	Calls  int `json:"calls"`
}

func (s share) String() string { return fmt.Sprintf("%d of %d", s.Failed, s.Calls) }

var (
	right  = rows.Cell{Got: rows.Sessions{Before: scenario.Loads("ab", 4, 0), After: scenario.Loads("ab", 4, 4)}}
	off    = rows.Cell{Got: rows.Sessions{Before: scenario.Loads("ab", 4, 0), After: scenario.Loads("ab", 5, 3)}, Deviations: []string{"session 6 <wrong>"}}
	failed = rows.Cell{Err: errors.New("no answer")}
)

// reportOf has a row of sessions and one of another measure, with a policy that is not judged and one that is.
func reportOf(free, judged rows.Cell) report {
	table := []rows.Row{
		rows.OfSessions(scenario.OneToTwo()),
		{Name: "one fails", Change: "a fails all calls", Measure: "failed calls", Want: "few", Exact: share{0, 100}},
	}
	policies := scenario.Policies()[2:]
	r := newReport(policies, table)
	r.cells[0] = []rows.Cell{free, judged}
	r.cells[1] = []rows.Cell{{Got: share{50, 100}, Deviations: []string{"too many failed"}}, {Got: share{0, 100}}}
	return r
}

func TestStatusAndVerdict(t *testing.T) {
	const (
		free10  = "least_request_experimental/10: exact in 0 of 2 scenarios"
		offLine = "OFF least_conn, one to two: session 6 <wrong>"
	)
	for _, c := range []struct {
		name         string
		free, judged rows.Cell
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
		{"off before it failed", off, rows.Cell{Err: failed.Err, Deviations: off.Deviations}, exitDeviates, []string{
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
	r := newReport(scenario.Policies()[2:], []rows.Row{rows.OfSessions(scenario.OneToTwo())})
	misplaced := off
	misplaced.Got = rows.Sessions{Before: scenario.Loads("ab", 4, 0), After: scenario.Loads("ab", 5, 3), Misplaced: 1}
	r.cells[0] = []rows.Cell{misplaced, right}
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

// The rows have names of their own, and -h describes each.
func TestTable(t *testing.T) {
	names := make(map[string]bool)
	for _, r := range rows.All() {
		assert.False(t, names[r.Name], r.Name)
		names[r.Name] = true
		assert.NotEmpty(t, r.Change, r.Name)
		assert.Contains(t, usage(), r.Change)
		assert.Less(t, utf8.RuneCountInString(r.Name), 24, r.Name)
	}
}

// A table with figures as wide as may be still fits 110 columns.
func TestTableFits(t *testing.T) {
	r := newReport(scenario.Policies(), rows.All())
	picture := newReport(scenario.Policies(), rows.Short())
	for p := range r.policies {
		for i := range r.rows {
			r.cells[i][p] = rows.Cell{Got: rows.Sessions{After: scenario.Loads("abcd", 6, 6, 10, 2)}, Deviations: []string{"wrong"}}
		}
		for i, row := range picture.rows {
			got := row.Exact.(rows.Sessions)
			got.Misplaced = 9
			picture.cells[i][p] = rows.Cell{Got: got, Deviations: []string{"wrong"}}
		}
	}
	for line := range strings.Lines(r.render() + picture.picture()) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 111, line)
	}
}

package main

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc/resolver"
)

var (
	right = placement{number: 5, host: "c", loads: []load{{"a", 2}, {"b", 2}, {"c", 0}}}
	wrong = placement{number: 6, host: "a", loads: []load{{"a", 2}, {"b", 2}, {"c", 1}}}
)

func TestMisplacement(t *testing.T) {
	for _, c := range []struct {
		name string
		placement
		want string
	}{
		{"the emptiest", right, ""},
		{"one of the emptiest", placement{1, "b", []load{{"a", 3}, {"b", 3}}}, ""},
		{"alone", placement{1, "a", []load{{"a", 9}}}, ""},
		{"a fuller one", wrong, "session 6 went to a, which held 2 while c held 1"},
		{"fuller by many", placement{2, "b", []load{{"a", 0}, {"b", 7}}}, "session 2 went to b, which held 7 while a held 0"},
		{"one that left", placement{3, "x", []load{{"a", 1}}}, "session 3 went to x, which is not in the list"},
	} {
		assert.Equal(t, c.want, c.misplacement(), c.name)
	}
}

// reportOf has one scenario, a policy that is not judged and one that is.
func reportOf(free, judged outcome) report {
	r := newReport([]host{{name: "n1", endpoint: resolver.Endpoint{Addresses: []resolver.Address{{Addr: "127.0.0.1:1"}}}}},
		[]policy{{name: "free"}, {name: "exact", detail: "2 choices", judged: true}}, []scenario{{name: "scale-out"}})
	r.outcomes[0][0], r.outcomes[0][1] = free, judged
	return r
}

func TestVerdict(t *testing.T) {
	good := outcome{before: []int{2, 2, 0}, after: []int{2, 2, 1}, placements: []placement{right}}
	bad := outcome{before: []int{2, 2, 0}, after: []int{3, 2, 1}, placements: []placement{right, wrong}}
	failed := outcome{err: errors.New("no answer")}
	const all = "exact with 2 choices put 1 of 1 sessions on a server that held the fewest."
	for _, c := range []struct {
		name         string
		free, judged outcome
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
	bad := outcome{before: []int{2, 2, 0}, after: []int{3, 2, 1}, placements: []placement{right, wrong}}
	text := reportOf(outcome{skipped: true}, bad).render()
	assert.Contains(t, text, "2/2/0 → 3/2/1")
	assert.Contains(t, text, "new 1/0/1  ✗ 1")
	assert.Contains(t, text, "not run")
	assert.Contains(t, text, notRun)
	assert.Contains(t, text, "Servers: a is n1 at 127.0.0.1:1.")
	assert.NotContains(t, reportOf(bad, bad).render(), notRun)
}

// The widest table there can be still fits a terminal of 110 columns.
func TestTableFits(t *testing.T) {
	r := newReport([]host{{}}, policies, scenarios)
	r.hosts = nil
	for s, scenario := range scenarios {
		for p := range policies {
			o := outcome{before: make([]int, scenario.hosts), after: make([]int, scenario.hosts)}
			for range 9 {
				o.placements = append(o.placements, wrong)
			}
			if scenario.hosts == 2 {
				o.before, o.after = []int{10, 0}, []int{12, 12}
			}
			r.outcomes[s][p] = o
		}
	}
	text, _, _ := strings.Cut(r.render(), "\n\n")
	for _, line := range strings.Split(text, "\n") {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 110, line)
	}
}

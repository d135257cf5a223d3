package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// load is how many sessions a host holds.
type load struct {
	host     string
	sessions int
}

// placement is where one session went, and what it could have known.
type placement struct {
	number int    // of the session within its trial, from 1
	host   string // that got it
	loads  []load // of the listed hosts when it was opened
}

// misplacement says what is wrong with the placement: nothing if no listed host held fewer sessions than the one that
// got this.
func (p placement) misplacement() string {
	at := slices.IndexFunc(p.loads, func(l load) bool { return l.host == p.host })
	if at < 0 {
		return fmt.Sprintf("session %d went to %s, which is not in the list", p.number, p.host)
	}
	got := p.loads[at]
	least := slices.MinFunc(p.loads, func(a, b load) int { return a.sessions - b.sessions })
	if got.sessions == least.sessions {
		return ""
	}
	return fmt.Sprintf("session %d went to %s, which held %d while %s held %d",
		p.number, got.host, got.sessions, least.host, least.sessions)
}

// outcome is a cell of the table.
type outcome struct {
	before, after []int       // sessions by host
	placements    []placement // of all sessions
	fresh         int         // index in placements of the first session after the change
	skipped       bool
	err           error
}

// misplacements says which sessions went wrong and how.
func (o outcome) misplacements() []string {
	var wrong []string
	for _, p := range o.placements {
		if w := p.misplacement(); w != "" {
			wrong = append(wrong, w)
		}
	}
	return wrong
}

// lines is the cell as it is printed.
func (o outcome) lines() []string {
	switch {
	case o.skipped:
		return []string{"not run"}
	case o.err != nil:
		return []string{"failed"}
	}
	fresh := make([]int, len(o.after))
	for i := range fresh {
		fresh[i] = o.after[i] - o.before[i]
	}
	mark := "✓"
	if n := len(o.misplacements()); n > 0 {
		mark = "✗ " + strconv.Itoa(n)
	}
	return []string{slashed(o.before) + " → " + slashed(o.after), "new " + slashed(fresh) + "  " + mark}
}

func slashed(counts []int) string {
	s := make([]string, len(counts))
	for i, c := range counts {
		s[i] = strconv.Itoa(c)
	}
	return strings.Join(s, "/")
}

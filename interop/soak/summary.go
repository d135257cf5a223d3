package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// summary is the last word on a run that went wrong with err, or did not.
func (s *soak) summary(err error, interrupted bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	elapsed := time.Since(s.began).Round(time.Millisecond)
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", s.attempts)
	switch {
	case err != nil:
		verdict := "VIOLATED"
		if !errors.As(err, new(*violation)) {
			verdict = "COULD NOT GO ON"
		}
		fmt.Fprintf(&text, "\n%s after %v, seed %d, at %s: %v\n\nthe last faults:\n", verdict, elapsed, s.set.seed, s.step, err)
		for _, line := range s.report.latest() {
			fmt.Fprintln(&text, line)
		}
		fmt.Fprintf(&text, "\nthe ledgers then:\n%s\nreplay with: %s -v\n", snapshotsOf(err), s.set.command())
	case interrupted:
		fmt.Fprintf(&text, "interrupted after %v, seed %d: all checks held\n", elapsed, s.set.seed)
	default:
		fmt.Fprintf(&text, "%v, seed %d: all checks held\n", elapsed, s.set.seed)
	}
	return text.String()
}

// snapshotsOf renders the ledgers as they were at a violation, a node to a line.
func snapshotsOf(err error) string {
	var v *violation
	if !errors.As(err, &v) {
		return "they are not what was wrong\n"
	}
	var text strings.Builder
	for _, s := range v.snapshots {
		fmt.Fprintf(&text, "%q: %d in flight, %d nodes\n", s.ResourceKey, s.InFlight, len(s.Endpoints))
		for _, n := range s.Endpoints {
			line, _ := json.Marshal(n) // a snapshot always marshals
			fmt.Fprintf(&text, "  %s\n", line)
		}
	}
	return text.String()
}

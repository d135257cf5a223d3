package rows

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Sessions are figures: how many sessions each listed host held before and after the new ones opened.
type Sessions struct {
	Before, After []scenario.Load
	Misplaced     int // that did not go to one with the fewest
}

// OfSessions measures a scenario by where the sessions are.
func OfSessions(s scenario.Scenario) Row {
	exact := Sessions{Before: s.Before, After: s.After}
	return Row{
		Name:    s.Name,
		Change:  s.Change,
		Measure: "sessions by server",
		Want:    countText(exact.Before) + " → " + exact.String(),
		Exact:   exact,
		Play:    func(ctx context.Context, p scenario.Policy) Cell { return playSessions(ctx, p, s) },
	}
}

// playSessions runs a scenario on servers of its own.
func playSessions(ctx context.Context, p scenario.Policy, s scenario.Scenario) Cell {
	names := make([]string, s.Hosts)
	for i := range names {
		names[i] = string(rune('a' + i))
	}
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, names...)
	if err != nil {
		return Cell{Err: err}
	}
	defer leastconntest.CloseNodes(nodes...)
	o := scenario.Play(ctx, nodes, p, s)
	deviations := append(misplaced(o), o.Faults...)
	if o.Err != nil {
		return Cell{Deviations: deviations, Err: o.Err}
	}
	return Cell{
		Got:        Sessions{Before: o.Before, After: o.After, Misplaced: len(o.Misplacements())},
		Deviations: append(deviations, countDeviations(o, s)...),
	}
}

// misplaced is a few of the misplacements, as one brings many.
func misplaced(o scenario.Outcome) []string {
	const few = 3
	all := o.Misplacements()
	n := len(all) - few
	if n <= 0 {
		return all
	}
	return append(all[:few], fmt.Sprintf("%d more sessions went to a server that did not hold the fewest", n))
}

// countDeviations says which counts of an outcome are not those of exact.
func countDeviations(o scenario.Outcome, s scenario.Scenario) []string {
	var deviations []string
	for _, c := range []struct {
		when      string
		got, want []scenario.Load
	}{{"before", o.Before, s.Before}, {"after", o.After, s.After}} {
		if !slices.Equal(c.got, c.want) {
			deviations = append(deviations, fmt.Sprintf("servers held %v %s, exact gives %v", scenario.Counts(c.got), c.when, scenario.Counts(c.want)))
		}
	}
	return deviations
}

// String is the counts after, with the difference between the fullest and the emptiest.
func (s Sessions) String() string {
	return fmt.Sprintf("%s (%d)", countText(s.After), scenario.Spread(s.After))
}

// MarshalJSON gives the counts by server.
func (s Sessions) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Before      map[string]int `json:"before"`
		After       map[string]int `json:"after"`
		MaxMinusMin int            `json:"maxMinusMin"`
	}{byHost(s.Before), byHost(s.After), scenario.Spread(s.After)})
}

func byHost(loads []scenario.Load) map[string]int {
	by := make(map[string]int, len(loads))
	for _, l := range loads {
		by[l.Host] = l.Sessions
	}
	return by
}

// countText is the counts of a few servers each, and of many what they have in common.
func countText(loads []scenario.Load) string {
	counts := scenario.Counts(loads)
	if len(counts) <= 4 {
		return Slashed(counts)
	}
	least, most := slices.Min(counts), slices.Max(counts)
	if least == most {
		return fmt.Sprintf("%d×%d", len(counts), least)
	}
	return fmt.Sprintf("%d…%d", least, most)
}

// Slashed is counts with slashes between them.
func Slashed(counts []int) string {
	texts := make([]string, len(counts))
	for i, c := range counts {
		texts[i] = strconv.Itoa(c)
	}
	return strings.Join(texts, "/")
}

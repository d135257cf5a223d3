package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
	"github.com/leastconn/grpc-leastconn/state"
)

// sessions are figures: how many sessions each listed host held before and after the new ones opened.
type sessions struct {
	before, after []trial.Load
}

// sessionRow measures a scenario by where the sessions are.
func sessionRow(s trial.Scenario) row {
	exact := sessions{before: s.Before, after: s.After}
	return row{
		name:    s.Name,
		change:  s.Change,
		measure: "sessions by server",
		want:    countText(exact.before) + " → " + exact.String(),
		exact:   exact,
		play:    func(ctx context.Context, p trial.Policy) cell { return playSessions(ctx, p, s) },
	}
}

// playSessions runs a trial on servers of its own.
func playSessions(ctx context.Context, p trial.Policy, s trial.Scenario) cell {
	names := make([]string, s.Hosts)
	for i := range names {
		names[i] = string(rune('a' + i))
	}
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, names...)
	if err != nil {
		return cell{err: err}
	}
	defer leastconntest.CloseNodes(nodes...)
	o := trial.Run(ctx, trial.Hosts(nodes...), p, s)
	off := append(misplaced(o), o.Faults...)
	if o.Err != nil {
		return cell{off: off, err: o.Err}
	}
	off = slices.Concat(off, deviations(o, s), leftovers())
	return cell{gave: sessions{before: o.Before, after: o.After}, off: off}
}

// misplaced is a few of the misplacements, as one wrong turn brings many.
func misplaced(o trial.Outcome) []string {
	const few = 3
	all := o.Misplacements()
	n := len(all) - few
	if n <= 0 {
		return all
	}
	return append(all[:few], fmt.Sprintf("%d more sessions went to a server that did not hold the fewest", n))
}

// deviations says which counts of an outcome are not those of exact.
func deviations(o trial.Outcome, s trial.Scenario) []string {
	var off []string
	for _, c := range []struct {
		when      string
		got, want []trial.Load
	}{{"before", o.Before, s.Before}, {"after", o.After, s.After}} {
		if !slices.Equal(c.got, c.want) {
			off = append(off, fmt.Sprintf("servers held %v %s, exact gives %v", trial.Counts(c.got), c.when, trial.Counts(c.want)))
		}
	}
	return off
}

// leftovers says which ledgers are not as they must be when no RPC is left.
func leftovers() []string {
	var left []string
	for _, l := range state.Ledgers() {
		if err := l.Check(); err != nil {
			left = append(left, err.Error())
		}
		if n := l.Snapshot().InFlight; n != 0 {
			left = append(left, fmt.Sprintf("%d RPCs are still counted after all have ended", n))
		}
	}
	return left
}

// String is the counts after, with the difference between the fullest and the emptiest.
func (s sessions) String() string {
	return fmt.Sprintf("%s (%d)", countText(s.after), trial.Spread(s.after))
}

// MarshalJSON gives the counts by server.
func (s sessions) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Before      map[string]int `json:"before"`
		After       map[string]int `json:"after"`
		MaxMinusMin int            `json:"maxMinusMin"`
	}{byHost(s.before), byHost(s.after), trial.Spread(s.after)})
}

func byHost(loads []trial.Load) map[string]int {
	by := make(map[string]int, len(loads))
	for _, l := range loads {
		by[l.Host] = l.Sessions
	}
	return by
}

// countText is the counts of a few servers each, and of many what they have in common.
func countText(loads []trial.Load) string {
	counts := trial.Counts(loads)
	if len(counts) <= 4 {
		texts := make([]string, len(counts))
		for i, c := range counts {
			texts[i] = strconv.Itoa(c)
		}
		return strings.Join(texts, "/")
	}
	least, most := slices.Min(counts), slices.Max(counts)
	if least == most {
		return fmt.Sprintf("%d×%d", len(counts), least)
	}
	return fmt.Sprintf("%d…%d", least, most)
}

package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// spreadOfFleet continues the line of a service, where reports are used.
func spreadOfFleet(f leastconnbalancer.FleetSnapshot) string {
	if f.IntervalSeconds == 0 {
		return ""
	}
	text := fmt.Sprintf(", of the fleet %.3g", f.Imbalance)
	if f.Silent > 0 {
		text += fmt.Sprintf(", %d silent", f.Silent)
	}
	return text
}

// reports is the table of a service whose servers report: with what others have in flight and the report's age.
func (w *watch) reports(nodes []leastconnbalancer.EndpointSnapshot) *barTable {
	t := &barTable{columns: []column{
		{"server", false, 4}, {"endpoint", false, 0}, {"state", false, 2}, {"in flight", true, 0}, {"others", true, 1}, {"report", true, 3},
	}}
	for _, n := range w.byName(nodes) {
		r := n.Report()
		t.most = max(t.most, level(n.InFlight+r.Others+n.Penalty, n))
		others := "-"
		if r.Told {
			others = strconv.FormatInt(r.Others, 10)
		}
		t.add(func(cell float64) string {
			cells := func(load int64) int { return int(math.Ceil(level(load, n) / cell)) }
			return w.screen.paint(barColours[n.State], bar(level(n.InFlight, n)/cell)) +
				w.screen.paint(faint, strings.Repeat("▒", cells(r.Others))) + w.screen.paint(yellow, strings.Repeat("░", cells(n.Penalty)))
		}, w.name(n), printable(n.Address()), strings.ReplaceAll(string(n.State), "_", " "), fmt.Sprint(n.InFlight), others, reportAge(r))
	}
	return t
}

// reportAge says how old a server's last report is.
func reportAge(r leastconnbalancer.ReportSnapshot) string {
	switch {
	case r.Silent:
		return "silent"
	case !r.Told:
		return "-"
	}
	if r.AgeSeconds < 10 {
		return fmt.Sprintf("%.1fs", math.Floor(r.AgeSeconds*10)/10)
	}
	return (time.Duration(r.AgeSeconds) * time.Second).String()
}

// barLegend says what is drawn.
func barLegend(services []leastconnbalancer.Snapshot) string {
	text := "█ in flight over weight  ░ penalty for fresh failures  "
	next, others := false, false
	for _, s := range services {
		if s.Fleet.IntervalSeconds > 0 {
			others = true
		} else {
			next = true
		}
	}
	if others {
		text += "▒ of others  "
	}
	if next || !others {
		text += "▸ next"
	}
	return strings.TrimRight(text, " ")
}

package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
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

// reports is table for a service whose servers report: with what others have in flight and the report's age.
func (w *watch) reports(text io.Writer, nodes []leastconnbalancer.EndpointSnapshot) {
	most := 1.0
	for _, n := range nodes {
		most = max(most, level(n.InFlight+n.Report().Others+n.Penalty, n))
	}
	cell := max(1, most/barWidth)
	t := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "server\tendpoint\tstate\tin flight\tothers\treport\t")
	for _, n := range w.byName(nodes) {
		r := n.Report()
		others := "-"
		if r.Told {
			others = strconv.FormatInt(r.Others, 10)
		}
		cells := func(load int64) int { return int(math.Ceil(level(load, n) / cell)) }
		fmt.Fprintf(t, "%s\t%s\t%s\t%9d\t%6s\t%6s\t%s%s%s\n", w.name(n), printable(n.Address()), strings.ReplaceAll(string(n.State), "_", " "),
			n.InFlight, others, reportAge(r), w.screen.paint(barColours[n.State], bar(level(n.InFlight, n)/cell)),
			w.screen.paint(faint, strings.Repeat("▒", cells(r.Others))), w.screen.paint(yellow, strings.Repeat("░", cells(n.Penalty))))
	}
	_ = t.Flush() // to memory
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

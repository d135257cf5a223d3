package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// What a frame has room for, in a terminal of 24 lines and 80 columns.
const (
	frameRows = 10 // endpoints of all services
	barWidth  = 12 // characters
)

// Colours of bars, and of what is less important.
const (
	faint  = "90"
	green  = "32"
	yellow = "33"
)

var barColours = map[leastconnbalancer.EndpointState]string{
	leastconnbalancer.EndpointReady: green, leastconnbalancer.EndpointDraining: yellow, leastconnbalancer.EndpointNotReady: faint, leastconnbalancer.EndpointDeparted: faint,
}

// frame is the load of the process as text.
func (w *watch) frame(services []leastconnbalancer.Snapshot) string {
	var text strings.Builder
	fmt.Fprintf(&text, "least_conn in this process, %.1fs\n", time.Since(w.begun).Seconds())
	rows := frameRows
	for _, s := range services {
		shown := s.Endpoints[:min(rows, len(s.Endpoints))]
		if len(shown) < len(s.Endpoints) {
			shown = busiest(s.Endpoints)[:rows]
		}
		rows -= len(shown)
		reports := s.Fleet.IntervalSeconds > 0
		fmt.Fprintf(&text, "\n%s  %d in flight, %d waiting, spread %.3g%s\n\n", printable(s.ResourceKey), s.InFlight, s.Waiting, s.Imbalance, spreadOfFleet(s.Fleet))
		if reports {
			w.reports(&text, shown)
		} else {
			w.table(&text, shown, highest(s.Endpoints))
		}
		if more := len(s.Endpoints) - len(shown); more > 0 {
			fmt.Fprintf(&text, "… and %d more that are less busy\n", more)
		}
	}
	fmt.Fprintf(&text, "\n%s\n\n", w.screen.paint(faint, barLegend(services)))
	for _, event := range w.recent {
		fmt.Fprintln(&text, event)
	}
	return text.String()
}

func (w *watch) table(text io.Writer, nodes []leastconnbalancer.EndpointSnapshot, priority uint32) {
	most := 1.0
	for _, n := range nodes {
		most = max(most, level(n.InFlight+n.Penalty, n))
	}
	cell := max(1, most/barWidth)
	nodes = w.byName(nodes)
	t := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "server\tendpoint\tstate\tweight\tin flight\tpicks\tscore\t")
	for _, n := range nodes {
		weight, score := "-", "-"
		if m, ok := n.Eligible(); ok {
			weight = strconv.FormatUint(uint64(m.Weight), 10)
			if m.Score > 0 {
				score = fmt.Sprintf("%.4g", m.Score)
				if m.Next && m.Priority == priority {
					score = "▸" + score
				}
			}
		}
		load := level(n.InFlight, n)
		fmt.Fprintf(t, "%s\t%s\t%s\t%6s\t%9d\t%5d\t%5s\t%s%s\n", w.name(n), printable(n.Address()), strings.ReplaceAll(string(n.State), "_", " "),
			weight, n.InFlight, n.Picks, score, w.screen.paint(barColours[n.State], bar(load/cell)),
			w.screen.paint(yellow, strings.Repeat("░", int(math.Ceil(level(n.Penalty, n)/cell)))))
	}
	_ = t.Flush() // to memory
}

// byName returns nodes by the names of their servers.
func (w *watch) byName(nodes []leastconnbalancer.EndpointSnapshot) []leastconnbalancer.EndpointSnapshot {
	return slices.SortedStableFunc(slices.Values(nodes), func(a, b leastconnbalancer.EndpointSnapshot) int {
		return cmp.Compare(w.name(a), w.name(b))
	})
}

// noName stands for the name of a server before its first session, and after other names.
const noName = "–"

// name returns what the server calls itself.
func (w *watch) name(n leastconnbalancer.EndpointSnapshot) string {
	for _, a := range n.Addresses {
		if name, ok := w.names[a]; ok {
			return name
		}
	}
	return noName
}

// highest returns the highest priority level that has a member which may be chosen.
func highest(nodes []leastconnbalancer.EndpointSnapshot) uint32 {
	priority := uint32(math.MaxUint32)
	for _, n := range nodes {
		if m, ok := n.Eligible(); ok && m.Score > 0 {
			priority = min(priority, m.Priority)
		}
	}
	return priority
}

// level returns a load of n over its weight.
func level(load int64, n leastconnbalancer.EndpointSnapshot) float64 {
	if m, ok := n.Eligible(); ok {
		return float64(load) / float64(m.Weight)
	}
	return float64(load)
}

// busiest returns nodes by level, the highest first.
func busiest(nodes []leastconnbalancer.EndpointSnapshot) []leastconnbalancer.EndpointSnapshot {
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b leastconnbalancer.EndpointSnapshot) int {
		return cmp.Compare(level(b.InFlight+b.Report().Others, b), level(a.InFlight+a.Report().Others, a))
	})
	return sorted
}

// bar returns a bar of a length in characters, to an eighth.
func bar(length float64) string {
	eighths := int(math.Round(length * 8))
	text := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[part-1])
	}
	return text
}

// printable quotes text that a terminal would do more with than print it.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

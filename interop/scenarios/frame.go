package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
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
	l := w.screen.layout(services)
	if l.head {
		fmt.Fprintln(&text, cutEnd(fmt.Sprintf("least_conn in this process, %.1fs", time.Since(w.begun).Seconds()), l.width))
	}
	rows := l.rows
	for i, s := range services {
		shown := s.Endpoints[:min(rows, len(s.Endpoints))]
		if len(shown) < len(s.Endpoints) {
			shown = busiest(s.Endpoints)[:rows]
		}
		rows -= len(shown)
		reports := s.Fleet.IntervalSeconds > 0
		figures := fmt.Sprintf("%d in flight, %d waiting, spread %.3g%s", s.InFlight, s.Waiting, s.Imbalance, spreadOfFleet(s.Fleet))
		key := cutFront(printable(s.ResourceKey), max(minKey, l.width-utf8.RuneCountInString(figures)-len(gap)))
		if l.head || i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintln(&text, cutEnd(key+gap+figures, l.width))
		if l.head {
			text.WriteString("\n")
		}
		if reports {
			w.reports(shown).write(&text, l)
		} else {
			w.loads(shown, highest(s.Endpoints)).write(&text, l)
		}
		if more := len(s.Endpoints) - len(shown); more > 0 {
			fmt.Fprintln(&text, cutEnd(fmt.Sprintf("… and %d more that are less busy", more), l.width))
		}
	}
	if l.legend {
		fmt.Fprintf(&text, "\n%s\n", w.screen.paint(faint, cutEnd(barLegend(services), l.width)))
	}
	if events := w.recent[max(0, len(w.recent)-l.events):]; l.events > 0 {
		text.WriteString("\n")
		for _, event := range events {
			fmt.Fprintln(&text, cutEnd(event, l.width))
		}
	}
	return text.String()
}

// loads is the table of a service.
func (w *watch) loads(nodes []leastconnbalancer.EndpointSnapshot, priority uint32) *barTable {
	t := &barTable{columns: []column{
		{"server", false, 2}, {"endpoint", false, 0}, {"state", false, 1}, {"weight", true, 5}, {"in flight", true, 0}, {"picks", true, 4}, {"score", true, 3},
	}}
	for _, n := range w.byName(nodes) {
		t.most = max(t.most, level(n.InFlight+n.Penalty, n))
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
		t.add(func(cell float64) string {
			return w.screen.paint(barColours[n.State], bar(level(n.InFlight, n)/cell)) +
				w.screen.paint(yellow, strings.Repeat("░", int(math.Ceil(level(n.Penalty, n)/cell))))
		}, w.name(n), printable(n.Address()), strings.ReplaceAll(string(n.State), "_", " "), weight, fmt.Sprint(n.InFlight), fmt.Sprint(n.Picks), score)
	}
	return t
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

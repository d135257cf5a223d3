package debugpage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"
)

// writeText writes the plain form. It never fails: it is written to memory.
func writeText(w io.Writer, v overview) {
	fmt.Fprintf(w, "least_conn in this process (%s, pid %d)\n", v.Process.Name, v.Process.PID)
	if len(v.Services) == 0 {
		fmt.Fprintln(w, "\nno service in use")
	}
	for _, hint := range v.Hints {
		fmt.Fprintln(w, "\n"+hint)
	}
	for _, s := range v.Services {
		name := strconv.Quote(s.Key)
		if s.Key == "" {
			name = "(private)"
		}
		var states []string
		for _, c := range s.States {
			states = append(states, fmt.Sprint(c.Count, " ", c.State))
		}
		fmt.Fprintf(w, "\n%s: %d in flight, %d waiting, %sspread %s%s; endpoints: %s\n\n",
			name, s.InFlight, s.Waiting, s.pending(), s.Spread, s.Fleet.text(), cmp.Or(strings.Join(states, ", "), "none"))
		writeEndpoints(w, s)
		writeChannels(w, s)
	}
}

// pending names, where there are some, the RPCs in flight that no endpoint has yet, and
// streams that move.
func (s service) pending() string {
	text := ""
	if s.Granted > 0 {
		text += fmt.Sprintf("%d granted, ", s.Granted)
	}
	if s.Reserved > 0 {
		text += fmt.Sprintf("%d reserved, ", s.Reserved)
	}
	if s.Moving > 0 {
		text += fmt.Sprintf("%d moving, ", s.Moving)
	}
	return text
}

// extra is a cell at the end of a table's line. Its column is there where the service
// has some of what it shows.
type extra struct {
	of   int64 // there is one above 0
	cell any
}

func cells(all ...extra) string {
	text := ""
	for _, e := range all {
		if e.of > 0 {
			text += fmt.Sprintf("%v\t", e.cell)
		}
	}
	return text
}

func (s service) endpointCells(units, granted, reserved, leaving, arriving, others, report any) string {
	reports := int64(0)
	if s.Fleet != nil {
		reports = 1
	}
	return cells(extra{s.ExtraUnits, units}, extra{s.Granted, granted}, extra{s.Reserved, reserved}, extra{s.Moving, leaving}, extra{s.Moving, arriving},
		extra{reports, others}, extra{reports, report})
}

func (s service) channelCells(granted, reserved, moving any) string {
	return cells(extra{s.Granted, granted}, extra{s.Reserved, reserved}, extra{s.Moving, moving})
}

func writeEndpoints(w io.Writer, s service) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "endpoint\tstate\tin flight\tpenalty\tweight\tcap\tramp\tpriority\toldest\tpicks\thighest\tscore\tfailures\tin state\tconnected\t"+s.endpointCells("units", "granted", "reserved", "leaving", "arriving", "others", "report"))
	for _, r := range s.Rows {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\t%s\t%s\t%s\n", printable(r.Name), r.state(), r.InFlight, r.Penalty,
			dash(r.Weight), dash(r.Cap.String()), dash(r.SlowStart), dash(r.Priority), dash(r.Oldest), r.Picks, r.Highest, dash(r.Score), r.Failures, r.Since, dash(r.Connected),
			s.endpointCells(r.Units, r.Granted, r.Reserved, r.Leaving, r.Arriving, dash(r.Report.Others), r.Report.text()))
	}
	t.Flush()
	if s.More > 0 {
		fmt.Fprintf(w, "… and %d more: add ?top=%d\n", s.More, s.Found)
	}
	for _, r := range s.Rows {
		for _, reason := range r.Why {
			fmt.Fprintf(w, "WHY %s: %s\n", dash(printable(r.Name)), printable(reason))
		}
	}
}

// state is the row's state, whether it is drained by Drain, and why it has no room where its
// cap does not tell.
func (r row) state() string {
	text := string(r.State)
	if r.Drained {
		text += ", by Drain"
	}
	if r.Full == "" || r.Full == full {
		return text
	}
	return text + ", " + r.Full
}

func writeChannels(w io.Writer, s service) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nchannel\tpicks\twaiting\thad to wait\tretried elsewhere\tpenalties\tdouble releases\t"+s.channelCells("granted", "reserved", "moving"))
	for _, r := range s.EndpointSets {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", dash(printable(channelOf(r))), r.Picks, r.Waiting, r.Queued, r.RetriesToOtherEndpoint,
			r.Penalties, r.DoubleReleases, s.channelCells(r.Granted, r.Reserved, r.Moving))
	}
	t.Flush()
	for _, r := range s.EndpointSets {
		for _, text := range r.Warnings {
			fmt.Fprintf(w, "WARNING %s: %s\n", dash(printable(channelOf(r))), printable(text))
		}
		if len(r.Config) > 0 {
			fmt.Fprintf(w, "CONFIGURATION %s: %s\n", dash(printable(channelOf(r))), shown(r.Config))
		}
	}
}

// shown is a configuration with JSON's escapes for all that a terminal does not print.
func shown(js json.RawMessage) string {
	var b strings.Builder
	for _, r := range string(js) {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// printable keeps control characters of names from the terminal.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

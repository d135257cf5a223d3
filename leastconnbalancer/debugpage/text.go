package debugpage

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
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
		fmt.Fprintf(w, "\n%s: %d in flight, %d waiting, spread %s; endpoints: %s\n\n",
			name, s.InFlight, s.Waiting, s.Spread, cmp.Or(strings.Join(states, ", "), "none"))
		writeEndpoints(w, s)
		writeChannels(w, s)
	}
}

func writeEndpoints(w io.Writer, s service) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "endpoint\tstate\tin flight\tpenalty\tweight\tcap\tramp\tpriority\toldest\tpicks\t")
	for _, r := range s.Rows {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t\n", printable(r.Name), r.State, r.InFlight, r.Penalty,
			dash(r.Weight), dash(r.Cap), dash(r.SlowStart), dash(r.Priority), dash(r.Oldest), r.Picks)
	}
	t.Flush()
	if s.More > 0 {
		fmt.Fprintf(w, "… and %d more: add ?top=%d\n", s.More, s.Found)
	}
}

func writeChannels(w io.Writer, s service) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nchannel\tpicks\twaiting\thad to wait\tretried elsewhere\tpenalties\tdouble releases\t")
	for _, r := range s.EndpointSets {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", dash(printable(r.Name)), r.Picks, r.Waiting, r.Queued, r.RetriesToOtherEndpoint, r.Penalties, r.DoubleReleases)
	}
	t.Flush()
	for _, r := range s.EndpointSets {
		for _, text := range r.Warnings {
			fmt.Fprintf(w, "WARNING %s: %s\n", dash(printable(r.Name)), printable(text))
		}
	}
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

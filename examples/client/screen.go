package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// framePeriod is how often the table is drawn.
const framePeriod = 250 * time.Millisecond

// barWidth is the longest bar, in characters.
const barWidth = 30

// draw draws the load of the process as it is now. On a terminal it replaces what it has drawn before.
func draw(out io.Writer, l *live) {
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "least_conn in this process, %s\n\n", time.Since(l.begun).Round(time.Second))
	for _, s := range state.Snapshots() {
		drawService(&buf, s)
	}
	fmt.Fprintf(&buf, "sessions by server: %s\n%s\n", l.sessions(), l.last)
	frame := buf.String()
	if terminal(out) {
		// Home, each line cleared to its end, and what is below it.
		frame = "\x1b[H" + strings.ReplaceAll(frame, "\n", "\x1b[K\n") + "\x1b[J"
	}
	_, _ = io.WriteString(out, frame) // nobody watches, if this fails
}

func drawService(w io.Writer, s state.Snapshot) {
	fmt.Fprintf(w, "%s: %d in flight, %d waiting, spread %.3g\n", s.ResourceKey, s.InFlight, s.Waiting, s.Imbalance)
	most := int64(1)
	for _, n := range s.Nodes {
		most = max(most, n.InFlight)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "endpoint\tstate\tweight\tin flight\tpicks\tscore\t")
	for _, n := range s.Nodes {
		weight, score := "-", "-"
		if m, ok := n.Taking(); ok {
			weight, score = fmt.Sprint(m.Weight), fmt.Sprintf("%.4g", m.Score)
		}
		bar := strings.Repeat("█", int(n.InFlight*barWidth/most))
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", n.Addresses[0], n.State, weight, n.InFlight, n.Picks, score, bar)
	}
	t.Flush()
	fmt.Fprintln(w)
}

func terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

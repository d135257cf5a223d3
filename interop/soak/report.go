package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc/status"
)

// report is what was injected, survived and made so far.
type report struct {
	mu        sync.Mutex
	faults    map[string]*faultCount
	rpcs      map[string]map[string]int // by kind and how they ended
	strange   error                     // see unexplained
	left      int                       // RPCs that were abandoned
	moves     int                       // of sessions
	points    int                       // quiet points
	full      int
	first     footprint
	last      footprint
	recent    []string // faults, the latest last
	snapshots int
}

// faultCount counts the faults of a kind. One is survived when it is over and a quiet point, or the end, has found all in
// order.
type faultCount struct{ injected, open, survived int }

// keptFaults is how many faults a violation is printed with.
const keptFaults = 30

func newReport() *report {
	return &report{faults: map[string]*faultCount{}, rpcs: map[string]map[string]int{}}
}

// fault counts the begin or the end of a fault; one that is over at once has no end.
func (r *report) fault(f fault, end bool, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.faults[f.name]
	if c == nil {
		c = &faultCount{}
		r.faults[f.name] = c
	}
	switch {
	case end:
		c.open--
	case f.end != nil:
		c.open++
		fallthrough
	default:
		c.injected++
	}
	if r.recent = append(r.recent, line); len(r.recent) > keptFaults {
		r.recent = slices.Delete(r.recent, 0, 1)
	}
}

// ended counts an RPC by its error.
func (r *report) ended(kind string, err error) {
	if err == io.EOF {
		err = nil
	}
	how := status.Code(err).String()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rpcs[kind] == nil {
		r.rpcs[kind] = map[string]int{}
	}
	r.rpcs[kind][how]++
	if r.strange == nil && !explained(err) {
		r.strange = fmt.Errorf("an RPC, %s, ended as nothing that was injected explains: %w", kind, err)
	}
}

// unexplained returns how the first RPC ended that should not have ended so, nil without one.
func (r *report) unexplained() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.strange
}

// leave counts an RPC that is abandoned; it is counted again by how it ended.
func (r *report) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left++
}

// move counts a session that is told to move.
func (r *report) move() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moves++
}

// survived notes that a quiet point found all in order.
func (r *report) survived(full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.points++
	if full {
		r.full++
	}
	for _, c := range r.faults {
		c.survived = c.injected - c.open
	}
}

// outlived notes that nothing was left at the end, whatever was open then.
func (r *report) outlived() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.faults {
		c.survived = c.injected
	}
}

// footprint notes the footprints to compare.
func (r *report) footprint(first, last footprint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first, r.last = first, last
}

// sampled counts a comparison of ledgers and attempts.
func (r *report) sampled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.snapshots++
}

// latest returns the latest faults, the last one last.
func (r *report) latest() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.recent)
}

// render returns the report for people.
func (r *report) render() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nfault\tinjected\tsurvived")
	for _, name := range slices.Sorted(maps.Keys(r.faults)) {
		fmt.Fprintf(table, "%s\t%d\t%d\n", name, r.faults[name].injected, r.faults[name].survived)
	}
	hows := map[string]bool{}
	for _, ends := range r.rpcs {
		for how := range ends {
			hows[how] = true
		}
	}
	columns := slices.Sorted(maps.Keys(hows))
	fmt.Fprintf(table, "\nRPC\tall\t%s\n", strings.Join(columns, "\t"))
	for _, name := range slices.Sorted(maps.Keys(r.rpcs)) {
		all := 0
		row := ""
		for _, how := range columns {
			n := r.rpcs[name][how]
			all += n
			row += fmt.Sprintf("\t%d", n)
		}
		fmt.Fprintf(table, "%s\t%d%s\n", name, all, row)
	}
	table.Flush()
	fmt.Fprintf(&text, "\n%d quiet points, %d of them full; %d comparisons in between; %d RPCs abandoned; sessions were told %d times to move\n",
		r.points, r.full, r.snapshots, r.left, r.moves)
	if r.full > 0 {
		fmt.Fprintf(&text, "at the last full one %d goroutines, at first %d; %.1f MB of heap, at first %.1f; "+
			"%d nodes in ledgers, at first %d\n", r.last.goroutines, r.first.goroutines, mega(r.last.heap), mega(r.first.heap), r.last.nodes, r.first.nodes)
	}
	return text.String()
}

// summary is the last word on a run that went wrong with err, or did not.
func (s *soak) summary(err error, interrupted bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	elapsed := time.Since(s.began).Round(time.Millisecond)
	var text strings.Builder
	fmt.Fprintf(&text, "%s; %d reports sent\n", s.attempts, s.env.reportsSent())
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

package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
)

// result is what a policy gave. Its names in JSON stay as they are; there may be more.
type result struct {
	Policy    string   `json:"policy"`     // as -policy takes it
	CV        float64  `json:"cv"`         // of the servers' loads, over time, before the first change
	CVInAll   float64  `json:"cvInAll"`    // that of the whole duration
	Streams   float64  `json:"streams"`    // that all servers held, on average
	Newcomer  filling  `json:"newcomer"`   // the server that joined
	Restarted filling  `json:"restarted"`  // the server that broke
	Opened    int      `json:"opened"`     // streams, ever
	Cut       int      `json:"cutStreams"` // by the server that broke
	Errors    []string `json:"errors"`     // of other streams

	label string
}

// report is what all policies gave.
type report struct {
	options
	results []result
}

const legend = `cv: standard deviation over mean of the streams that each server holds, by its own count, averaged over time: before the
first change, and with both of them. New server: how long after it joined it had 90 % of the mean, and its peak over the mean.
Restarted: the same from when it was back. Held: streams on all servers, on average. Errors: streams that failed and that the
restarted server did not cut.
`

func (r report) print(out io.Writer) error {
	if r.json {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			Servers  int      `json:"servers"`
			Clients  int      `json:"clients"`
			Streams  int      `json:"streamsPerClient"`
			Life     float64  `json:"meanLifeSeconds"`
			Duration float64  `json:"durationSeconds"`
			Seed     uint64   `json:"seed,string"`
			Results  []result `json:"results"`
		}{r.servers, r.clients, r.streams, r.life.Seconds(), r.duration.Seconds(), r.seed, r.results})
	}
	t := scenario.Table{Dense: true, Head: []scenario.Block{
		{"policy"}, {"cv"}, {"cv with", "changes"}, {"new server", "90 %"}, {"", "peak"}, {"restarted", "90 %"}, {"", "peak"}, {"held"}, {"errors"},
	}}
	for _, x := range r.results {
		row := []scenario.Block{{x.label}}
		for _, cell := range []string{
			fmt.Sprintf("%.3f", x.CV), fmt.Sprintf("%.3f", x.CVInAll), x.Newcomer.after(), fmt.Sprintf("%.2f", x.Newcomer.Peak),
			x.Restarted.after(), fmt.Sprintf("%.2f", x.Restarted.Peak), fmt.Sprintf("%.1f", x.Streams), fmt.Sprint(len(x.Errors)),
		} {
			row = append(row, scenario.Block{cell})
		}
		t.Rows = append(t.Rows, row)
	}
	text := fmt.Sprintf("%d servers, one more later; %d client processes with %d streams each of %v on average; %v; seed %d\n\n%s%s",
		r.servers, r.clients, r.streams, r.life, r.duration, r.seed, t, legend)
	for _, x := range r.results {
		for _, e := range x.Errors[:min(len(x.Errors), fewErrors)] {
			text += fmt.Sprintf("FAILED %s: %s\n", x.Policy, e)
		}
	}
	_, err := io.WriteString(out, text)
	return err
}

// fewErrors is how many errors of a policy are printed.
const fewErrors = 5

func (f filling) after() string {
	if !f.Filled {
		return "never"
	}
	return fmt.Sprintf("%.1f s", f.After)
}

// status is the exit status.
func (r report) status() int {
	for _, x := range r.results {
		if len(x.Errors) > 0 {
			return exitErrors
		}
	}
	return exitWell
}

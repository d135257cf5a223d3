// Scenarios shows where load balancing policies put long streams while servers and channels come, go, age, fail and
// return. It plays a table of scenarios with round_robin, least_request_experimental and least_conn over real connections
// and compares what each policy gave with what exact least-connections gives.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/interop/scenarios/rows"
)

const intro = `Scenarios opens sessions (bidirectional streams that are held open) while servers and channels come, go, age, fail and
return, and prints one table that shows what each load balancing policy made of it. Every policy plays every scenario on
fresh servers of this process, on TCP loopback:

`

const outro = `
The policies are round_robin, grpc-go's least_request_experimental with 2 choices (its default) and with 10, and
least_conn. A policy is right in a scenario if every session went to a server that held the fewest when it was opened, as
the servers count, and the servers then hold what exact least-connections gives; of sessions that open at one moment, if
they could have been placed so in some order. Rows called "moves" have sessions that open anew when they are told to: they
show where these are in the end. What least_conn itself counts must be what the servers hold, too.
round_robin begins at a random server and least_request picks at random, so what they give differs from run to run.

With -picture four short scenarios are played, and the table shows where the new sessions went.

With -watch nothing is compared: sessions open with least_conn, one each -every, and a table shows the load as it changes,
in place: each endpoint with what is in flight, what it was picked for, and its score; ▸ marks the next. -target is one
that gRPC resolves. Without it there are three servers in this process, of which the third joins after 12 sessions; once 30
sessions are open each new one ends the oldest, and from time to time one of the servers leaves the list and returns.
With -reports servers are asked what they have in flight of all clients, and the table shows what others have there.

Exit status: 0 if least_conn was right in every scenario, or was not played; 1 if it was off in one; 2 if something could
not be run.

Flags:
`

// Exit statuses, as usage describes them.
const (
	exitExact = iota
	exitDeviates
	exitFailed
)

func main() { flags.Main(run) }

// options are what the flags say.
type options struct {
	policies             []scenario.Policy
	rows                 []rows.Row
	json, picture, watch bool
	watched              watchOptions
	policy, pattern      string
}

func run(ctx context.Context, args []string, out, errs io.Writer) (status int) {
	o, err := parse(args, out)
	if err != nil {
		return flags.Refuse("scenarios", err, errs)
	}
	if o.watch {
		status, err = exitExact, runWatch(ctx, o.watched, out)
	} else {
		status, err = o.play(ctx, out)
	}
	if err != nil {
		fmt.Fprintln(errs, "scenarios:", err)
		return exitFailed
	}
	return status
}

func parse(args []string, out io.Writer) (o options, err error) {
	fs := flags.New("scenarios")
	fs.StringVar(&o.policy, "policy", "", "play only with the policy of this `name`: "+policyNames()+".\nDefault: all")
	fs.StringVar(&o.pattern, "run", "", "play only the scenarios whose name matches the `regexp`. Default: all")
	flags.Bool(fs, &o.json, "json", "print JSON instead of the table")
	flags.Bool(fs, &o.picture, "picture", "play four short scenarios and show where the new sessions went")
	flags.Bool(fs, &o.watch, "watch", "draw a table of the load while sessions open")
	fs.StringVar(&o.watched.target, "target", "", "with -watch, open sessions over this gRPC `target`, such as nodes:///path/to/nodes.yaml.\n"+
		"Default: servers of its own")
	flags.Duration(fs, &o.watched.every, "every", time.Second, time.Millisecond, time.Hour, "with -watch, how often to open a session")
	flags.Duration(fs, &o.watched.life, "for", 0, 0, 24*time.Hour, "with -watch, how long to do so; 0: until interrupted")
	flags.Duration(fs, &o.watched.asked, "reports", 0, 100*time.Millisecond, time.Hour, "with -watch, ask servers so often what they have in flight, and choose by it")
	if err := flags.Parse(fs, args, usage(), out); err != nil {
		return o, err
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, name := range []string{"target", "every", "for", "reports"} {
		if given[name] && !o.watch {
			return o, fmt.Errorf("-%s is there, want it with -watch only", name)
		}
	}
	if (o.watch && o.picture) || ((o.watch || o.picture) && o.json) || o.watch && (given["policy"] || given["run"]) {
		return o, errors.New("-watch goes with none of -picture, -json, -policy and -run, nor -picture with -json")
	}
	if o.policies, err = selectPolicies(o.policy); err != nil {
		return o, err
	}
	table := rows.All()
	if o.picture {
		table = rows.Short()
	}
	o.rows, err = selectRows(table, o.pattern)
	return o, err
}

// usage lists the scenarios as they are.
func usage() string {
	var b strings.Builder
	b.WriteString(intro)
	for _, r := range rows.All() {
		fmt.Fprintf(&b, "  %-24s%s\n", r.Name, r.Change)
	}
	b.WriteString(outro)
	return b.String()
}

// play plays the scenarios and prints what the policies made of them.
func (o options) play(ctx context.Context, out io.Writer) (status int, err error) {
	r := play(ctx, o.policies, o.rows)
	var text []byte
	switch {
	case o.json:
		text, err = r.encode()
	case o.picture:
		text = []byte(r.picture())
	default:
		text = []byte(r.render())
	}
	if err == nil {
		_, err = out.Write(text)
	}
	return r.status(), err
}

// play plays every row with every policy, one at a time, policy by policy. Rows that wait most of the time go side by side.
func play(ctx context.Context, policies []scenario.Policy, table []rows.Row) report {
	r := newReport(policies, table)
	for p, policy := range policies {
		play := func(i int) {
			ctx, cancel := context.WithTimeout(ctx, rows.Timeout)
			defer cancel()
			r.cells[i][p] = table[i].Play(ctx, policy)
		}
		var beside sync.WaitGroup
		for i, row := range table {
			if !row.Waits {
				play(i)
			}
		}
		for i, row := range table {
			if row.Waits {
				beside.Go(func() { play(i) })
			}
		}
		beside.Wait()
	}
	return r
}

// selectPolicies finds the policies that -policy names: one by its ID, or all of one name. Without one it is all.
func selectPolicies(name string) ([]scenario.Policy, error) {
	var chosen []scenario.Policy
	for _, p := range scenario.Policies() {
		if name == "" || name == p.Name || name == p.ID() {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-policy is %q, want one of %s", name, policyNames())
	}
	return chosen, nil
}

// policyNames is what -policy may be.
func policyNames() string {
	var names []string
	for _, p := range scenario.Policies() {
		for _, name := range []string{p.Name, p.ID()} {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// selectRows finds those of the table whose names match a pattern.
func selectRows(table []rows.Row, pattern string) ([]rows.Row, error) {
	matches, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-run is %q, want a regular expression: %w", pattern, err)
	}
	var chosen []rows.Row
	for _, r := range table {
		if matches.MatchString(r.Name) {
			chosen = append(chosen, r)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-run is %q, which no scenario's name matches", pattern)
	}
	return chosen, nil
}

// Client shows where load balancing policies put long-lived sessions while servers come, go and age. It runs the same
// scenarios with round_robin, least_request_experimental and least_conn, over real connections, and prints one table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
)

const usage = `Client opens long-lived sessions (bidirectional streams) while servers come, go and age, and prints one table that
shows where each load balancing policy put them:

  scale-out         a and b hold 2 sessions each; c joins; 2 more open
  one to two        a holds 4; b joins; 4 more open
  leave and return  a and b hold 4 each; a leaves the server list and returns, its sessions alive; 4 more open
  ageing            a holds 6; b joins; the connection to a gets a GOAWAY and is replaced; 6 more open

The policies are round_robin, grpc-go's least_request_experimental (with its default of 2 choices and with 10) and
least_conn. Without flags the three servers run in this process, on TCP loopback.

With -target the servers are yours: start three examples/server, each with a -name of its own. Only they can age their
connections, so "ageing" is run only with -max-age, which says what -max-age the first of them was started with; each
policy then waits about that long. Otherwise that row says "not run".

If -target is one target with a scheme, such as nodes:///path/to/nodes.yaml, dns-poll:///api.example.com:50051 or
srv:///_grpc._tcp.api.example.com, the client opens a session over it every -every, with least_conn, for as long as -for
says, and prints where each one went and how many every server holds: edit the file, or scale out, and see the new server
take the next ones.

Exit status: 0 if least_conn put every session on a server that held the fewest, 1 if it misplaced one, 2 if something
could not be run.

Flags:
`

// Exit statuses, as usage describes them.
const (
	exitPlaced = iota
	exitMisplaced
	exitFailed
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	status, err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "client:", err)
	}
	os.Exit(status)
}

func run(ctx context.Context, args []string, out io.Writer) (status int, err error) {
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	target := flags.String("target", "", "comma-separated `addresses` of at least three servers; the first three are used.\n"+
		"Or one target with a scheme. Default: servers of its own")
	every := flags.Duration("every", time.Second, "how often to open a session over a -target with a scheme; more than 0")
	period := flags.Duration("for", 0, "how long to do so; 0: until interrupted")
	screen := flags.Bool("watch", false, "draw a table of the load while sessions open; without -target over servers of its own")
	page := flags.String("http", "", "`address` for the debug page and /metrics while sessions open, such as 127.0.0.1:8080;\n"+
		"without -target over servers of its own")
	maxAge := flags.Duration("max-age", 0, "the -max-age of the first server of -target. 0: it has none")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitPlaced, err
	case err != nil:
		return exitFailed, nil // flags has said what is wrong
	case flags.NArg() > 0:
		return exitFailed, fmt.Errorf("unexpected argument %q; see -h", flags.Arg(0))
	case *maxAge < 0, *maxAge > 0 && *target == "":
		return exitFailed, fmt.Errorf("-max-age is %v: it is for -target, and not negative; see -h", *maxAge)
	case *every <= 0, *period < 0:
		return exitFailed, fmt.Errorf("-every is %v, want more than 0; -for is %v, want 0 or more", *every, *period)
	}
	scheme := strings.Contains(*target, "://") || strings.HasPrefix(*target, "nodes:")
	if (*screen || *page != "") && *target != "" && !scheme {
		return exitFailed, fmt.Errorf("-target %q: -watch and -http want one target with a scheme, or none", *target)
	}
	if scheme || *screen || *page != "" {
		if *period > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx) // without a deadline, which would go to the servers
			defer time.AfterFunc(*period, cancel).Stop()
			defer cancel()
		}
		return exitPlaced, runLive(ctx, liveOptions{target: *target, every: *every, watch: *screen, http: *page}, out)
	}

	site, err := openSite(ctx, *target, *maxAge)
	if err != nil {
		return exitFailed, err
	}
	defer site.close()
	report := compare(ctx, site, trial.Policies(), trial.Basics())
	if _, err := io.WriteString(out, report.render()); err != nil {
		return exitFailed, err
	}
	return report.status(), nil
}

// trialTimeout bounds one policy's run of one scenario, ageing apart.
const trialTimeout = 20 * time.Second

// compare runs every scenario with every policy, policy by policy.
func compare(ctx context.Context, site *site, policies []trial.Policy, scenarios []trial.Scenario) report {
	r := newReport(site.hosts, policies, scenarios)
	for p, policy := range policies {
		for s, scenario := range scenarios {
			if scenario.Ages && !site.ages() {
				r.cells[s][p].skipped = true
				continue
			}
			ctx, cancel := context.WithTimeout(ctx, trialTimeout+2*site.maxAge)
			r.cells[s][p].Outcome = trial.Run(ctx, site.hosts, policy, scenario)
			cancel()
		}
	}
	return r
}

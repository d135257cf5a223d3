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
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
)

// Exit statuses, as usage describes them.
const (
	exitExact = iota
	exitOff
	exitFailed
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	status, err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "scenarios:", err)
	}
	os.Exit(status)
}

func run(ctx context.Context, args []string, out io.Writer) (status int, err error) {
	flags := flag.NewFlagSet("scenarios", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage())
		flags.PrintDefaults()
	}
	policy := flags.String("policy", "", "play only with the policy of this `name`: "+policyNames()+".\nDefault: all")
	pattern := flags.String("run", "", "play only the scenarios whose name matches the `regexp`. Default: all")
	asJSON := flags.Bool("json", false, "print JSON instead of the table")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitExact, err
	case err != nil:
		return exitFailed, nil // flags has said what is wrong
	case flags.NArg() > 0:
		return exitFailed, fmt.Errorf("unexpected argument %q; see -h", flags.Arg(0))
	}
	policies, err := selectPolicies(*policy)
	if err != nil {
		return exitFailed, err
	}
	rows, err := selectRows(*pattern)
	if err != nil {
		return exitFailed, err
	}

	r := play(ctx, policies, rows)
	text := []byte(r.render())
	if *asJSON {
		if text, err = r.encode(); err != nil {
			return exitFailed, err
		}
	}
	if _, err := out.Write(text); err != nil {
		return exitFailed, err
	}
	return r.status(), nil
}

// patience bounds one policy's run of one scenario. Those that are run take a second at most.
const patience = 30 * time.Second

// play runs every row with every policy, one at a time, policy by policy.
func play(ctx context.Context, policies []trial.Policy, rows []row) report {
	r := newReport(policies, rows)
	for p, policy := range policies {
		for i, row := range rows {
			ctx, cancel := context.WithTimeout(ctx, patience)
			r.cells[i][p] = row.play(ctx, policy)
			cancel()
		}
	}
	return r
}

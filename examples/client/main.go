// Client shows where load balancing policies put long-lived sessions while servers come, go and age. It runs the same
// scenarios with round_robin, least_request_experimental and least_conn, over real connections, and prints one table; or
// it opens sessions with least_conn and shows the load as it changes.
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
	o, err := parseOptions(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitPlaced, err
	case errors.Is(err, errSaid):
		return exitFailed, nil
	case err != nil:
		return exitFailed, err
	case o.live():
		if err := runLive(ctx, o, out); err != nil {
			return exitFailed, err
		}
		return exitPlaced, nil
	}

	site, err := openSite(ctx, o.target, o.maxAge)
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

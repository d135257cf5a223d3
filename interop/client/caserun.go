package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// caseRun is one case as a child runs it.
type caseRun struct {
	request
	channel    *leastconntest.Channel
	countCheck *countCheck
}

// report is what a child says of a case that has passed.
type report struct {
	Sent map[string]int // RPC attempts by address
}

// runChild runs the case that the request in names, writes a report to out, and to errs what has failed.
func runChild(ctx context.Context, in io.Reader, out, errs io.Writer, cases []testCase) (status int) {
	cr := &caseRun{countCheck: newCountCheck()}
	r, err := report{}, json.NewDecoder(in).Decode(&cr.request)
	if err == nil {
		r, err = cr.run(ctx, cases)
	}
	if err == nil {
		err = json.NewEncoder(out).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(errs, childPrefix, err)
		return exitFailed
	}
	return exitPassed
}

// run runs the case and checks the counts. It does not return if gRPC's checks fail.
func (cr *caseRun) run(ctx context.Context, cases []testCase) (report, error) {
	chosen, err := choose(cases, cr.Case)
	if err != nil {
		return report{}, err
	}
	c := chosen[0]
	if cr.channel, err = cr.dial(grpc.WithStatsHandler(cr.countCheck)); err != nil {
		return report{}, err
	}
	defer cr.channel.Close()
	if err := waitReady(ctx, cr.channel, cr.Servers, cr.timeout()); err != nil {
		return report{}, err
	}
	// Not a deadline of ctx: that would end what the case leaves open, and hide it.
	limit := time.AfterFunc(cr.limit(c), func() { fatal("not over after", cr.limit(c)) })
	c.do(ctx, cr)
	limit.Stop()
	sent, err := cr.countCheck.result()
	if err == nil && len(sent) == 0 && !c.unsent {
		err = errors.New("no RPC was sent")
	}
	return report{Sent: sent}, errors.Join(err, waitIdle(ctx, cr.timeout()))
}

// fatal ends the process, as gRPC's checks do when they fail.
func fatal(why ...any) {
	fmt.Fprint(os.Stderr, childPrefix, " ", fmt.Sprintln(why...))
	os.Exit(exitFailed)
}

// anotherChannel makes one more channel.
func (cr *caseRun) anotherChannel() (*grpc.ClientConn, func()) {
	ch, err := cr.dial(grpc.WithStatsHandler(cr.countCheck))
	if err != nil {
		fatal("another channel:", err)
	}
	return ch.Conn(), func() { ch.Close() }
}

// waitReady waits until the policy can use all servers, at most for patience.
func waitReady(ctx context.Context, ch *leastconntest.Channel, servers []server, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ch.Connect()
	var missing []string
	foreign := false
	err := leastconntest.WaitFor(ctx, "all servers", func() bool {
		settled := ch.Conn().GetState() // before the ledgers, which come first
		ledgers := leastconnbalancer.Snapshots()
		missing = missing[:0]
		for _, s := range servers {
			if !s.ready(ledgers) {
				missing = append(missing, s.Name)
			}
		}
		foreign = len(ledgers) == 0 && (settled == connectivity.Ready || settled == connectivity.TransientFailure)
		return len(missing) == 0 || foreign
	})
	switch {
	case foreign:
		return errors.New("the channel has no counts of least_conn: the service config selects another policy")
	case err != nil:
		return fmt.Errorf("not ready: %s: %w%s", strings.Join(missing, ", "), err, complaint(ch))
	}
	return nil
}

// complaint is why an RPC fails now, if it does.
func complaint(ch *leastconntest.Channel) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := ch.Client().EmptyCall(ctx, &grpc_testing.Empty{}); err != nil {
		return fmt.Sprintf("; RPCs fail: %v", err)
	}
	return ""
}

// waitIdle waits until no ledger counts an RPC and all keep their invariants, at most for patience.
func waitIdle(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var left error
	err := leastconntest.WaitFor(ctx, "counts of 0", func() bool {
		left = notIdle()
		return left == nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, left)
	}
	return nil
}

func notIdle() error {
	var errs []error
	for _, l := range state.Ledgers() {
		errs = append(errs, l.Check())
		for _, n := range l.Snapshot().Endpoints {
			if n.InFlight != 0 {
				errs = append(errs, fmt.Errorf("%d in flight on %s", n.InFlight, strings.Join(n.Addresses, ", ")))
			}
		}
	}
	return errors.Join(errs...)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// waitSettled waits until no ledger counts an RPC and all keep their invariants, at most for patience.
func waitSettled(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var left error
	err := leastconntest.WaitFor(ctx, "counts of 0", func() bool {
		left = unsettled()
		return left == nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, left)
	}
	return nil
}

func unsettled() error {
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

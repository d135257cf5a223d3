package leastconntest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leastconn/grpc-leastconn/state"
)

// Key is the resource key that the channel's load has with least_conn, unless its configuration or its resolver gives
// another one.
func (c *Channel) Key() string { return c.conn.CanonicalTarget() }

// WaitIdle waits until least_conn's ledgers of the keys count no RPC and keep their invariants. It is an error that says
// what they still count. Ledgers of other keys do not matter, so tests whose channels have keys of their own may wait side
// by side.
func WaitIdle(ctx context.Context, keys ...string) error {
	var left error
	err := WaitFor(ctx, "no RPC to be counted in "+strings.Join(keys, ", "), func() bool {
		left = stillCounted(keys)
		return left == nil
	})
	if err != nil {
		return fmt.Errorf("%w; %w", err, left)
	}
	return nil
}

// stillCounted says what the ledgers of keys count or have wrong.
func stillCounted(keys []string) error {
	var errs []error
	for _, l := range state.Ledgers() {
		if !slices.Contains(keys, l.Key()) {
			continue
		}
		errs = append(errs, l.Check())
		for _, e := range l.Snapshot().Endpoints {
			if e.InFlight != 0 {
				errs = append(errs, fmt.Errorf("%d RPCs are counted on %s", e.InFlight, strings.Join(e.Addresses, ", ")))
			}
		}
	}
	return errors.Join(errs...)
}

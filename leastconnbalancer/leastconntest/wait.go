package leastconntest

import (
	"context"
	"fmt"
	"time"
)

// DefaultTimeout bounds a wait whose context has no deadline.
const DefaultTimeout = time.Minute

const pollInterval = time.Millisecond

// WaitFor polls condition until it holds, ctx ends, or, if ctx has no deadline, DefaultTimeout is over. The error says
// what was waited for.
func WaitFor(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	start := time.Now()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("leastconntest: waited %v for %s: %w", time.Since(start).Round(time.Millisecond), what, ctx.Err())
		}
	}
	return nil
}

// bounded gives ctx a deadline if it has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, DefaultTimeout)
}

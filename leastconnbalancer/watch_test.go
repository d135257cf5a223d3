package leastconnbalancer_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// watch looks at the channel's ledger again and again until stop is called,
// which fails the test if an invariant or the check did not hold at any time.
func (c *channel) watch(check func(state.Snapshot) error) (stop func()) {
	done, result := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(500 * time.Microsecond)
		defer tick.Stop()
		for {
			if err := c.look(check); err != nil {
				result <- err
				return
			}
			select {
			case <-tick.C:
			case <-done:
				result <- nil
				return
			case <-c.lab.ctx.Done():
				result <- c.lab.ctx.Err()
				return
			}
		}
	}()
	return func() {
		c.lab.Helper()
		close(done)
		require.NoError(c.lab, <-result)
	}
}

func (c *channel) look(check func(state.Snapshot) error) error {
	for _, l := range state.Ledgers() {
		if l.Key() != c.key {
			continue
		}
		if err := l.Check(); err != nil {
			return err
		}
		return check(l.Snapshot())
	}
	return fmt.Errorf("there is no ledger %q", c.key)
}

// steady is watch for a node whose count must not change.
func (c *channel) steady(n *leastconntest.Node, want int64) (stop func()) {
	return c.watch(func(s state.Snapshot) error {
		for _, node := range s.Endpoints {
			if !slices.Contains(node.Addresses, n.Addr()) {
				continue
			}
			if node.InFlight != want {
				return fmt.Errorf("node %s has %d in flight, not %d", n.Name(), node.InFlight, want)
			}
			return nil
		}
		return fmt.Errorf("node %s is not in the ledger", n.Name())
	})
}

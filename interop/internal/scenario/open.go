package scenario

import (
	"context"
	"fmt"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Open opens n sessions one after another and notes where each went. The servers hold what the run has opened, before
// and after.
func (c *Client) Open(n int) {
	r := c.run
	r.step(func(ctx context.Context) error {
		if err := r.waitCounts(ctx); err != nil {
			return err
		}
		if err := c.openEach(ctx, n); err != nil {
			return err
		}
		return r.waitCounts(ctx)
	})
}

func (c *Client) openEach(ctx context.Context, n int) error {
	for range n {
		loads := c.loads()
		s, err := c.channel.Open(ctx)
		if err != nil {
			return fmt.Errorf("session %d: %w", c.run.nextNumber(), err)
		}
		c.record(s, loads)
	}
	return nil
}

// OpenTogether opens n sessions from n goroutines that all start at one moment, and notes how many each host got.
func (c *Client) OpenTogether(n int) {
	r := c.run
	r.step(func(ctx context.Context) error {
		if err := r.waitCounts(ctx); err != nil {
			return err
		}
		loads, first := c.loads(), r.nextNumber()
		streams, err := c.channel.OpenTogether(ctx, n)
		for _, s := range streams {
			r.sessions = append(r.sessions, session{Stream: s, client: c})
		}
		if err != nil {
			return fmt.Errorf("%d sessions at once: %w", n, err)
		}
		r.outcome.Placements = append(r.outcome.Placements, bestOrder(first, loads, leastconntest.Counts(streams))...)
		return r.waitCounts(ctx)
	})
}

// Wake is Open for a channel that is idle, or may become so at any time until it has a session: the first session counts
// once the channel has been awake and has used all its hosts from before it was opened.
func (c *Client) Wake(n int) {
	r := c.run
	r.step(func(ctx context.Context) error {
		for {
			if err := c.waitInUse(ctx); err != nil {
				return err
			}
			if err := r.waitCounts(ctx); err != nil {
				return err
			}
			begun, loads := c.dials.total(), c.loads()
			s, err := c.channel.Open(ctx)
			if err != nil {
				return fmt.Errorf("session %d: %w", r.nextNumber(), err)
			}
			if c.dials.total() == begun {
				c.record(s, loads)
				break
			}
			s.Cancel() // the channel fell asleep meanwhile and has begun to connect
		}
		if err := c.openEach(ctx, n-1); err != nil {
			return err
		}
		return r.waitCounts(ctx)
	})
}

// nextNumber is the number of the next session.
func (r *Run) nextNumber() int { return len(r.outcome.Placements) + 1 }

// record keeps a session that was opened over hosts with loads.
func (c *Client) record(s *leastconntest.Stream, loads []Load) {
	r := c.run
	r.outcome.Placements = append(r.outcome.Placements, Placement{Number: r.nextNumber(), Host: s.Node(), Loads: loads})
	r.sessions = append(r.sessions, session{Stream: s, client: c})
}

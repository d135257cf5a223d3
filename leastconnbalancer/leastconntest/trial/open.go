package trial

import (
	"context"
	"fmt"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Open opens n sessions one after another and notes where each went. The servers hold what the trial has opened, before
// and after.
func (c *Client) Open(n int) {
	t := c.trial
	t.do(func(ctx context.Context) error {
		if err := t.agree(ctx); err != nil {
			return err
		}
		if err := c.openEach(ctx, n); err != nil {
			return err
		}
		return t.agree(ctx)
	})
}

func (c *Client) openEach(ctx context.Context, n int) error {
	for range n {
		loads := c.loads()
		s, err := c.channel.Open(ctx)
		if err != nil {
			return fmt.Errorf("session %d: %w", c.trial.next(), err)
		}
		c.note(s, loads)
	}
	return nil
}

// OpenTogether opens n sessions from n goroutines that all start at one moment, and notes how many each host got.
func (c *Client) OpenTogether(n int) {
	t := c.trial
	t.do(func(ctx context.Context) error {
		if err := t.agree(ctx); err != nil {
			return err
		}
		loads, first := c.loads(), t.next()
		streams, err := c.channel.OpenTogether(ctx, n)
		for _, s := range streams {
			t.sessions = append(t.sessions, session{Stream: s, client: c})
		}
		if err != nil {
			return fmt.Errorf("%d sessions at once: %w", n, err)
		}
		t.outcome.Placements = append(t.outcome.Placements, together(first, loads, leastconntest.Counts(streams))...)
		return t.agree(ctx)
	})
}

// Wake is Open for a channel that is idle, or may become so at any time until it has a session: the first session counts
// once the channel has been awake and has used all its hosts from before it was opened.
func (c *Client) Wake(n int) {
	t := c.trial
	t.do(func(ctx context.Context) error {
		for {
			if err := c.settle(ctx); err != nil {
				return err
			}
			if err := t.agree(ctx); err != nil {
				return err
			}
			begun, loads := c.dials.total(), c.loads()
			s, err := c.channel.Open(ctx)
			if err != nil {
				return fmt.Errorf("session %d: %w", t.next(), err)
			}
			if c.dials.total() == begun {
				c.note(s, loads)
				break
			}
			s.Cancel() // the channel fell asleep meanwhile and has begun to connect
		}
		if err := c.openEach(ctx, n-1); err != nil {
			return err
		}
		return t.agree(ctx)
	})
}

// next is the number of the next session.
func (t *Trial) next() int { return len(t.outcome.Placements) + 1 }

// note keeps a session that was opened over hosts with loads.
func (c *Client) note(s *leastconntest.Stream, loads []Load) {
	t := c.trial
	t.outcome.Placements = append(t.outcome.Placements, Placement{Number: t.next(), Host: s.Node(), Loads: loads})
	t.sessions = append(t.sessions, session{Stream: s, client: c})
}

package scenario

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

func TestMisplacedSessionsAreFound(t *testing.T) {
	o := Play(t.Context(), start(t, "ab"), Policies()[0], OneToTwo())
	require.NoError(t, o.Err)
	assert.Equal(t, []int{6, 2}, Counts(o.After))
	assert.Len(t, o.Placements, 8)
	assert.Len(t, o.Misplacements(), 2)
}

// The first error is the outcome's, and ends the scenario.
func TestFirstErrorEndsARun(t *testing.T) {
	hosts := start(t, "ab")
	for name, c := range map[string]struct {
		want string
		play func(*Run, *Client)
	}{
		"no such slot":   {`no host has the slot 'c': there are 2`, func(_ *Run, c *Client) { c.List("abc") }},
		"no slot at all": {`no host has the slot 'A'`, func(t *Run, _ *Client) { t.End("A") }},
		"a bad config":   {"invalid character", func(_ *Run, c *Client) { c.Reconfigure("}") }},
		"a bad dialling": {"invalid character", func(t *Run, _ *Client) { t.Dial(ClientConfig{Fields: []string{"}"}}).List("a") }},
		"empty list":     {"bad resolver state", func(_ *Run, c *Client) { c.List("a"); c.Resend(unlisted) }},
	} {
		o := Play(t.Context(), hosts, exact(), Scenario{Name: name, Hosts: 2, Play: func(t *Run) {
			client := t.Dial(ClientConfig{})
			c.play(t, client)
			client.List("ab")
			client.Open(2)
			t.RecordBefore()
		}})
		assert.ErrorContains(t, o.Err, c.want, name)
		assert.Empty(t, o.Placements, name)
		assert.Nil(t, o.Before, name)
	}
	o := Play(t.Context(), hosts, exact(), ScaleOut())
	assert.ErrorContains(t, o.Err, "scale-out needs 3 hosts, got 2")
}

// What servers hold beside the run's sessions is an error; what only least_conn counts is a fault.
func TestCountsAreCompared(t *testing.T) {
	t.Parallel()
	for _, p := range []Policy{exact(), Policies()[0]} {
		ctx, cancel := context.WithCancel(t.Context())
		o := Play(ctx, start(t, "a"), p, Scenario{Name: "stray", Hosts: 1, Play: func(r *Run) {
			c := r.Dial(ClientConfig{})
			c.List("a")
			r.Check()
			r.step(func(context.Context) error { _, err := c.channel.Open(t.Context()); return err })
			require.Empty(t, r.outcome.Faults)
			r.compareLedgers()
			cancel() // else it would be waited for until the time is over
			r.Check()
			if err := leastconntest.WaitIdle(ctx, c.channel.Key()); p.Judged {
				assert.ErrorContains(t, err, "1 RPCs are counted on "+r.hosts[0].Addr())
			} else {
				assert.NoError(t, err)
			}
			assert.NoError(t, leastconntest.WaitIdle(ctx, "another key"))
		}})
		assert.ErrorContains(t, o.Err, "a serves 1 sessions, not 0", p.Name)
		assert.ErrorIs(t, o.Err, context.Canceled)
		if p.Judged {
			// Its end may be counted later than its server sees it: then that is found once more.
			assert.Equal(t, []string{"least_conn counts 1 sessions on a, which holds 0"}, slices.Compact(o.Faults))
		} else {
			assert.Empty(t, o.Faults, "%s counts nothing", p.Name)
		}
	}
}

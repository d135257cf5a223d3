package trial

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLeastConnGivesWhatExactGives(t *testing.T) {
	hosts := start(t, "abc")
	for _, s := range Basics() {
		o := Run(t.Context(), hosts, exact(), s)
		require.NoError(t, o.Err, s.Name)
		assert.Equal(t, s.Before, o.Before, s.Name)
		assert.Equal(t, s.After, o.After, s.Name)
		assert.Empty(t, o.Misplacements(), s.Name)
		assert.Empty(t, o.Faults, s.Name)
	}
}

func TestMisplacedSessionsAreFound(t *testing.T) {
	o := Run(t.Context(), start(t, "ab"), Policies()[0], OneToTwo())
	require.NoError(t, o.Err)
	assert.Equal(t, []int{6, 2}, Counts(o.After))
	assert.Len(t, o.Placements, 8)
	assert.Len(t, o.Misplacements(), 2)
}

// The first error is the outcome's, and ends the trial.
func TestFirstErrorEndsATrial(t *testing.T) {
	hosts := start(t, "ab")
	for name, c := range map[string]struct {
		want string
		play func(*Trial, *Client)
	}{
		"no such slot":   {`no host has the slot 'c': there are 2`, func(_ *Trial, c *Client) { c.List("abc") }},
		"no slot at all": {`no host has the slot 'A'`, func(t *Trial, _ *Client) { t.End("A") }},
		"a bad config":   {"invalid character", func(_ *Trial, c *Client) { c.Reconfigure("}") }},
		"a bad dialling": {"invalid character", func(t *Trial, _ *Client) { t.Dial(Dialing{Fields: []string{"}"}}).List("a") }},
		"empty list":     {"bad resolver state", func(_ *Trial, c *Client) { c.List("a"); c.Resend(unlisted) }},
	} {
		o := Run(t.Context(), hosts, exact(), Scenario{Name: name, Hosts: 2, Play: func(t *Trial) {
			client := t.Dial(Dialing{})
			c.play(t, client)
			client.List("ab")
			client.Open(2)
			t.Changed()
		}})
		assert.ErrorContains(t, o.Err, c.want, name)
		assert.Empty(t, o.Placements, name)
		assert.Nil(t, o.Before, name)
	}
	o := Run(t.Context(), hosts, exact(), ScaleOut())
	assert.ErrorContains(t, o.Err, "scale-out needs 3 hosts, got 2")
}

// Only a server that is this process's own can be told to do something.
func TestHostsOfOtherProcesses(t *testing.T) {
	hosts := start(t, "ab")
	hosts[0].Node = nil
	o := Run(t.Context(), hosts, exact(), OneToTwo())
	require.NoError(t, o.Err)
	assert.Equal(t, OneToTwo().After, o.After)

	o = Run(t.Context(), hosts, exact(), Scenario{Hosts: 2, Play: func(t *Trial) { t.Stop("a") }})
	assert.ErrorContains(t, o.Err, "host a is another process's")
}

// What servers hold beside the trial's sessions is an error; what only least_conn counts is a fault.
func TestCountsAreCompared(t *testing.T) {
	hosts := start(t, "a")
	remote := []Host{{Name: "a", Endpoint: hosts[0].Endpoint}}
	ctx, cancel := context.WithCancel(t.Context())
	stray := Scenario{Name: "stray", Hosts: 1, Play: func(tr *Trial) {
		c := tr.Dial(Dialing{})
		c.List("a")
		tr.Check()
		tr.do(func(context.Context) error { _, err := c.channel.Open(t.Context()); return err })
		if hosts := tr.hosts; hosts[0].Node != nil {
			cancel() // else Check would wait for its time to be over
		}
		tr.Check()
	}}
	o := Run(ctx, remote, exact(), stray)
	require.NoError(t, o.Err)
	assert.Contains(t, o.Faults, "least_conn counts 1 sessions on a, which holds 0")

	o = Run(ctx, remote, Policies()[0], stray)
	require.NoError(t, o.Err)
	assert.Empty(t, o.Faults, "round_robin counts nothing")

	require.NoError(t, hosts[0].Node.WaitLive(t.Context(), 0))
	o = Run(ctx, hosts, exact(), stray)
	assert.ErrorContains(t, o.Err, "a serves 1 sessions, not 0")
	assert.ErrorIs(t, o.Err, context.Canceled)
}

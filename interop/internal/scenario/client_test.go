package scenario

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
)

// unlisted empties a list.
func unlisted(s *resolver.State) { s.Endpoints = nil }

// onlyOn checks that the last n sessions are on one host.
func onlyOn(t *testing.T, r *Run, n int, host string) {
	t.Helper()
	placements := r.outcome.Placements
	require.GreaterOrEqual(t, len(placements), n, "%v", r.outcome.Err)
	for _, p := range placements[len(placements)-n:] {
		assert.Equal(t, host, p.Host, "session %d", p.Number)
	}
}

// However a policy chooses, once List returns all listed hosts get sessions and no other does.
func TestListIsFollowed(t *testing.T) {
	everyPolicy(t, "abc", func(t *testing.T, r *Run) {
		c := r.Dial(ClientConfig{})
		c.List("a")
		c.Open(6)
		onlyOn(t, r, 6, "a")
		c.List("ab")
		begun := c.Connections()
		c.List("c")
		c.Open(3)
		onlyOn(t, r, 3, "c")
		c.List("abc")
		c.Resend(func(s *resolver.State) { slices.Reverse(s.Endpoints) })
		c.Reconfigure(`"methodConfig":[]`)
		assert.Equal(t, 2, begun)
		r.Check()
		assert.Equal(t, []int{6, 0, 3}, Counts(mustCensus(t, r)))
	})
}

func mustCensus(t *testing.T, r *Run) []Load {
	t.Helper()
	loads, err := r.countSessions(r.ctx)
	require.NoError(t, err)
	return loads
}

func TestOpenTogether(t *testing.T) {
	o := Play(t.Context(), start(t, "ab"), exact(), Scenario{Hosts: 2, Play: func(t *Run) {
		c := t.Dial(ClientConfig{})
		c.List("a")
		c.Open(2)
		c.List("ab")
		c.OpenTogether(40)
	}})
	require.NoError(t, o.Err)
	assert.Equal(t, Loads("ab", 21, 21), o.After)
	assert.Len(t, o.Placements, 42)
	assert.Equal(t, 42, o.Placements[41].Number)
	assert.Empty(t, o.Misplacements())
}

// Keys keep the loads of clients apart.
func TestKeys(t *testing.T) {
	o := Play(t.Context(), start(t, "ab"), exact(), Scenario{Hosts: 2, Play: func(t *Run) {
		for _, key := range []string{"", "one", "two", "two"} {
			c := t.Dial(ClientConfig{Key: key})
			c.List("ab")
			c.Open(3)
		}
	}})
	require.NoError(t, o.Err)
	assert.Empty(t, o.Misplacements())
	assert.Empty(t, o.Faults)
	assert.Equal(t, 12, o.After[0].Sessions+o.After[1].Sessions)
}

func TestClosedClient(t *testing.T) {
	everyPolicy(t, "ab", func(t *testing.T, r *Run) {
		one, two := r.Dial(ClientConfig{}), r.Dial(ClientConfig{})
		one.List("a")
		one.Open(3)
		two.List("b")
		two.Open(2)
		one.Close()
		assert.Equal(t, Loads("b", 2), mustCensus(t, r))
		assert.Equal(t, []*Client{two}, r.Clients())
	})
}

// A policy that has not heard yet that a host cannot be used is waited for.
func TestProbesFindHostsThatAreNotToBeUsed(t *testing.T) {
	everyPolicy(t, "ab", func(t *testing.T, r *Run) {
		c := r.Dial(ClientConfig{})
		c.List("b")
		c.Open(3)
		c.List("ab")
		for down, load := range map[string]Load{"a": {"b", 3}, "b": {"a", 0}} {
			r.down = map[string]bool{down: true}
			require.Equal(t, []Load{load}, c.loads())
			assert.ErrorContains(t, c.probe(t.Context(), c.loads()), "went to "+down+", which is not to be used")
		}
		r.down = nil
		assert.NoError(t, c.probe(t.Context(), c.loads()))
	})
}

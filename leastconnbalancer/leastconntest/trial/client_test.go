package trial

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
func onlyOn(t *testing.T, tr *Trial, n int, host string) {
	t.Helper()
	placements := tr.outcome.Placements
	require.GreaterOrEqual(t, len(placements), n, "%v", tr.outcome.Err)
	for _, p := range placements[len(placements)-n:] {
		assert.Equal(t, host, p.Host, "session %d", p.Number)
	}
}

// However a policy chooses, once List returns all listed hosts get sessions and no other does.
func TestListIsFollowed(t *testing.T) {
	everyPolicy(t, "abc", func(t *testing.T, tr *Trial) {
		c := tr.Dial(Dialing{})
		c.List("a")
		c.Open(6)
		onlyOn(t, tr, 6, "a")
		c.List("ab")
		begun := c.Connections()
		c.List("c")
		c.Open(3)
		onlyOn(t, tr, 3, "c")
		c.List("abc")
		c.Resend(func(s *resolver.State) { slices.Reverse(s.Endpoints) })
		c.state().Endpoints[0].Addresses[0].Addr = "elsewhere"
		assert.NotEqual(t, "elsewhere", tr.hosts[0].Endpoint.Addresses[0].Addr, "a changed list changes no host")
		c.Reconfigure(`"methodConfig":[]`)
		assert.Equal(t, 2, begun)
		tr.Check()
		assert.Equal(t, []int{6, 0, 3}, Counts(mustCensus(t, tr)))
	})
}

func mustCensus(t *testing.T, tr *Trial) []Load {
	t.Helper()
	loads, err := tr.census(tr.ctx)
	require.NoError(t, err)
	return loads
}

func TestOpenTogether(t *testing.T) {
	o := Run(t.Context(), start(t, "ab"), exact(), Scenario{Hosts: 2, Play: func(t *Trial) {
		c := t.Dial(Dialing{})
		c.List("a")
		c.Open(2)
		c.List("ab")
		c.OpenTogether(40)
	}})
	require.NoError(t, o.Err)
	assert.Equal(t, At("ab", 21, 21), o.After)
	assert.Len(t, o.Placements, 42)
	assert.Equal(t, 42, o.Placements[41].Number)
	assert.Empty(t, o.Misplacements())
}

// Keys keep the loads of clients apart.
func TestKeys(t *testing.T) {
	o := Run(t.Context(), start(t, "ab"), exact(), Scenario{Hosts: 2, Play: func(t *Trial) {
		for _, key := range []string{"", "one", "two", "two"} {
			c := t.Dial(Dialing{Key: key})
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
	everyPolicy(t, "ab", func(t *testing.T, tr *Trial) {
		one, two := tr.Dial(Dialing{}), tr.Dial(Dialing{})
		one.List("a")
		one.Open(3)
		two.List("b")
		two.Open(2)
		one.Close()
		assert.Equal(t, At("b", 2), mustCensus(t, tr))
		assert.Equal(t, []*Client{two}, tr.Clients())
	})
}

// A policy that has not heard yet that a host cannot be used is waited for.
func TestProbesFindHostsThatAreNotToBeUsed(t *testing.T) {
	everyPolicy(t, "ab", func(t *testing.T, tr *Trial) {
		c := tr.Dial(Dialing{})
		c.List("b")
		c.Open(3)
		c.List("ab")
		for down, load := range map[string]Load{"a": {"b", 3}, "b": {"a", 0}} {
			tr.down = map[string]bool{down: true}
			require.Equal(t, []Load{load}, c.loads())
			assert.ErrorContains(t, c.probe(t.Context(), c.loads()), "went to "+down+", which is not to be used")
		}
		tr.down = nil
		assert.NoError(t, c.probe(t.Context(), c.loads()))
	})
}

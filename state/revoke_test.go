package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// What was granted on a member that goes is taken back: its RPCs wait again, at
// the places that they had.
func TestGrantIsRevoked(t *testing.T) {
	for name, away := range map[string]func(s *site){
		"not ready": func(s *site) { s.view.Remove(s.members["a"]) },
		"draining":  func(s *site) { s.set("a", 0) },
		"off":       func(s *site) { s.remove("a") },
		"moved":     func(s *site) { s.second.Set(s.members["a"], 1, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.guard(state.Guards{})
			s.second = s.roster.NewReadySet(1)
			s.capped(3, "a")
			s.capped(1, "b")
			s.roster.SetQueueSets(s.view)
			s.openMany(4)
			rs := s.queued(5)
			s.end("a", 3)
			require.Equal(t, 2, s.waiting())
			away(s)
			require.NoError(t, s.ledger.Check())
			require.Equal(t, 5, s.waiting())
			require.Empty(t, granted(rs))
			require.EqualValues(t, 1, s.ledger.Snapshot().InFlight)
			s.end("b", 1)
			for i := range rs {
				require.Equal(t, []int{i}, granted(rs))
				rs[i].finish()
			}
		})
	}
}

// What a removed member was granted goes on to where there is room: nobody else
// would say so.
func TestRevokedGrantFindsOtherRoom(t *testing.T) {
	s := busySite(t, "a", "b")
	r := s.queued(1)
	s.end("a", 1)
	s.end("b", 1)
	s.view.Remove(s.members["a"])
	require.NoError(t, s.ledger.Check())
	require.Zero(t, s.waiting())
	require.Equal(t, []int{0}, granted(r))
	require.Equal(t, "b", r[0].on)
}

// Room that is taken back is another endpoint set's, where it has the endpoint still.
func TestRevokedRoomGoesToAnotherRoster(t *testing.T) {
	x := busySite(t, "a")
	y := newSiteOn(t, x.ledger)
	y.guard(state.Guards{})
	y.capped(1, "a")
	mine, theirs := x.queued(1), y.queued(1)
	x.end("a", 1)
	x.view.Remove(x.members["a"])
	require.NoError(t, x.ledger.Check())
	require.Equal(t, []int{0}, granted(theirs))
	require.Empty(t, granted(mine))
	theirs[0].finish()
	require.Equal(t, map[string]int{"a": 0}, x.loads())
	x.set("a", 1)
	require.Equal(t, []int{0}, granted(mine))
}

// A member that stays in its ready set with another weight or value, or cap, keeps
// what was granted on it: nobody who came later gets it.
func TestGrantStaysWithItsMember(t *testing.T) {
	for name, change := range map[string]func(s *site){
		"weight": func(s *site) { s.set("a", 7) },
		"cap":    func(s *site) { s.members["a"].SetMaxInFlight(1) },
		"ramp": func(s *site) {
			s.members["a"].StartSlowly()
			s.set("a", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := busySite(t, "a")
			y := newSiteOn(t, x.ledger)
			y.guard(state.Guards{})
			y.capped(1, "a")
			mine, theirs := x.queued(1), y.queued(1)
			x.end("a", 1)
			change(x)
			require.NoError(t, x.ledger.Check())
			require.Empty(t, granted(theirs))
			require.Equal(t, []int{0}, granted(mine))
		})
	}
}

// The value that an RPC gets is the member's when it takes up its room.
func TestGrantHasTheLatestValue(t *testing.T) {
	s := busySite(t, "a")
	r := s.queued(1)[0]
	s.end("a", 1)
	s.view.Set(s.members["a"], 1, "newer")
	lease, value, outcome := s.roster.AcquireOrQueue(r.ctx, nil, s.view)
	require.Equal(t, state.Chosen, outcome)
	require.Equal(t, "newer", value)
	require.True(t, lease.Release())
}

// A level that is closed takes back what was granted in it.
func TestViewClosesWithGrants(t *testing.T) {
	s := busySite(t, "a", "b")
	rs := s.queued(3)
	s.end("a", 1)
	s.end("b", 1)
	s.view.Close()
	require.NoError(t, s.ledger.Check())
	require.Equal(t, 3, s.waiting())
	require.Zero(t, s.ledger.Snapshot().InFlight)
	next := s.roster.NewReadySet(0)
	s.roster.SetQueueSets(next)
	for _, a := range []string{"a", "b"} {
		next.Set(s.members[a], 1, a)
	}
	require.Equal(t, []int{0, 1}, granted(rs))
}

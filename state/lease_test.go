package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

func TestReleaseOnlyOnce(t *testing.T) {
	e := newEnv(t)
	e.add("a")
	e.open()
	lease, _, ok := e.readySet.Acquire()
	require.True(t, ok)
	twin := lease
	require.Equal(t, map[string]int{"a": 2}, e.loads())
	require.True(t, lease.Release())
	for range 3 {
		require.False(t, lease.Release())
		require.False(t, twin.Release(), "a copy is the same lease")
	}
	require.Equal(t, map[string]int{"a": 1}, e.loads())
	require.NoError(t, e.ledger.Check())
}

func TestZeroLease(t *testing.T) {
	require.False(t, state.Lease{}.Release())
	require.False(t, state.Lease{}.Fail())
}

// What notes a lease is used again; an old lease of the same note does nothing
// to the new one.
func TestStaleLeaseDoesNotEndAnother(t *testing.T) {
	e := newEnv(t)
	e.add("a", "b")
	var stale []state.Lease
	for range 50 {
		lease, _, ok := e.readySet.Acquire()
		require.True(t, ok)
		for _, old := range stale {
			require.False(t, old.Release())
		}
		require.EqualValues(t, 1, e.ledger.Snapshot().InFlight)
		require.True(t, lease.Release())
		stale = append(stale, lease)
	}
	e.openMany(10)
	for _, old := range stale {
		require.False(t, old.Release())
	}
	require.Equal(t, map[string]int{"a": 5, "b": 5}, e.loads())
}

// In a steady state a lease costs nothing but its value, with all guards at work,
// too: at caps that come and go, on members that start slowly, and when it fails.
func TestLeaseAllocatesNothing(t *testing.T) {
	all := state.Guards{
		FailurePenalty: 20 * time.Millisecond,
		SlowStart:      state.SlowStart{Window: time.Hour, MinWeightPercent: 10, Aggression: 1},
		MaxQueued:      100,
	}
	for name, tc := range map[string]struct {
		guards state.Guards
		limit  uint32
		end    func(state.Lease) bool
	}{
		"no guards":            {state.Guards{}, 0, state.Lease.Release},
		"cap of 1":             {all, 1, state.Lease.Release},
		"cap of 4, failing":    {all, 4, state.Lease.Fail},
		"no cap, all guards":   {all, 0, state.Lease.Release},
		"cap of 1000, failing": {all, 1000, state.Lease.Fail},
	} {
		e := newEnv(t)
		e.guard(tc.guards)
		e.capped(tc.limit, names(25)...)
		for i, a := range names(50)[25:] {
			e.list(a)
			e.members[a].SetMaxInFlight(tc.limit)
			e.set(a, uint32(i%3+1))
		}
		leases := make([]state.Lease, 10)
		calls := func() {
			for i := range leases {
				leases[i], _, _ = e.readySet.Acquire()
			}
			for _, l := range leases {
				tc.end(l)
			}
		}
		for range 100 { // of tables that grow
			calls()
		}
		require.Zero(t, testing.AllocsPerRun(1000, calls), name)
		require.NoError(t, e.ledger.Check())
	}
}

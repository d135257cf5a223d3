package state_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

func TestReleaseOnlyOnce(t *testing.T) {
	s := newSite(t)
	s.add("a")
	s.open()
	lease, _, ok := s.view.Acquire()
	require.True(t, ok)
	twin := lease
	require.Equal(t, map[string]int{"a": 2}, s.loads())
	require.True(t, lease.Release())
	for range 3 {
		require.False(t, lease.Release())
		require.False(t, twin.Release(), "a copy is the same lease")
	}
	require.Equal(t, map[string]int{"a": 1}, s.loads())
	require.NoError(t, s.ledger.Check())
}

func TestReleaseOfTheZeroLease(t *testing.T) {
	var lease state.Lease
	require.False(t, lease.Release())
	require.False(t, lease.Release())
}

func TestNothingToAcquire(t *testing.T) {
	s := newSite(t)
	for range 2 {
		lease, value, ok := s.view.Acquire()
		require.False(t, ok)
		require.Nil(t, value)
		require.False(t, lease.Release())
		s.list("a") // listed, not ready
	}
	require.Zero(t, s.ledger.Snapshot().InFlight)
}

// What notes a lease is used again; an old lease of the same note does nothing
// to the new one.
func TestStaleLeaseDoesNotEndAnother(t *testing.T) {
	s := newSite(t)
	s.add("a", "b")
	var stale []state.Lease
	for range 50 {
		lease, _, ok := s.view.Acquire()
		require.True(t, ok)
		for _, old := range stale {
			require.False(t, old.Release())
		}
		require.EqualValues(t, 1, s.ledger.Snapshot().InFlight)
		require.True(t, lease.Release())
		stale = append(stale, lease)
	}
	s.openMany(10)
	for _, old := range stale {
		require.False(t, old.Release())
	}
	require.Equal(t, map[string]int{"a": 5, "b": 5}, s.loads())
}

// More leases end at once than the ledger keeps notes of.
func TestManyLeasesEbbAndFlow(t *testing.T) {
	s := newSite(t)
	s.add("a", "b", "c")
	for range 3 {
		stale := map[string][]state.Lease{}
		s.openMany(6000)
		for a, ls := range s.leases {
			stale[a] = append(stale[a], ls...)
			s.end(a, 2000)
		}
		require.NoError(t, s.ledger.Check())
		s.openMany(6000)
		for _, ls := range stale {
			for _, l := range ls {
				require.False(t, l.Release())
			}
		}
		require.Equal(t, map[string]int{"a": 2000, "b": 2000, "c": 2000}, s.loads())
		for a := range s.leases {
			s.end(a, 2000)
		}
	}
}

// In a steady state a lease costs nothing but its value.
func TestLeaseAllocatesNothing(t *testing.T) {
	for name, weightOf := range map[string]func(int) uint32{
		"equal":    func(int) uint32 { return 1 },
		"distinct": func(i int) uint32 { return uint32(i + 1) },
	} {
		for _, held := range []int{0, 25, 200} {
			s := newSite(t)
			s.list(names(50)...)
			for i, a := range names(50) {
				s.set(a, weightOf(i))
			}
			s.openMany(held)
			allocs := testing.AllocsPerRun(1000, func() {
				lease, _, _ := s.view.Acquire()
				lease.Release()
			})
			require.Zero(t, allocs, "%s weights, %d held", name, held)
		}
	}
}

// A thousand goroutines start at one barrier; choosing and counting are one
// step, so each of ten endpoints gets exactly its hundred.
func TestD22OneBarrierExactShares(t *testing.T) {
	const callers, n = 1000, 10
	s := newSite(t)
	s.add(names(n)...)
	start := make(chan struct{})
	got := make([]string, callers)
	leases := make([]state.Lease, callers)
	var done sync.WaitGroup
	for i := range callers {
		done.Go(func() {
			<-start
			lease, value, _ := s.view.Acquire()
			leases[i], got[i] = lease, value.(string)
		})
	}
	close(start)
	done.Wait()
	for i, a := range got {
		s.leases[a] = append(s.leases[a], leases[i])
	}
	for _, a := range names(n) {
		require.Len(t, s.leases[a], callers/n, a)
	}
	require.NoError(t, s.ledger.Check())
}

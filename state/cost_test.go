package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// all is every guard at work.
var all = state.Guards{
	FailurePenalty: 20 * time.Millisecond,
	SlowStart:      state.SlowStart{Window: time.Hour, MinWeightPercent: 10, Aggression: 1},
	MaxQueued:      100,
}

// With all guards at work a lease costs nothing but its value, still: at caps
// that come and go, on members that ramp, and when it fails.
func TestLeaseWithGuardsAllocatesNothing(t *testing.T) {
	for name, end := range map[string]func(state.Lease) bool{"release": state.Lease.Release, "fail": state.Lease.Fail} {
		for _, limit := range []uint32{0, 1, 4, 1000} {
			s := newSite(t)
			s.guard(all)
			s.capped(limit, names(25)...)
			for _, a := range names(50)[25:] {
				s.list(a)
				s.members[a].SetMaxInFlight(limit)
				s.set(a, 1)
			}
			leases := make([]state.Lease, 10)
			calls := func() {
				for i := range leases {
					leases[i], _, _ = s.view.Acquire()
				}
				for _, l := range leases {
					end(l)
				}
			}
			for range 100 { // of tables that grow
				calls()
			}
			require.Zero(t, testing.AllocsPerRun(1000, calls), "%s, limit %d", name, limit)
			require.NoError(t, s.ledger.Check())
		}
	}
}

// Guards that have nothing to do leave the fast path as it is: at no time does a
// pick look at its endpoint's members.
func TestGuardsAreOffTheFastPath(t *testing.T) {
	s := newSite(t)
	s.guard(all)
	s.add(names(5)...)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		lease, _, _ := s.view.Acquire()
		lease.Release()
	}))
}

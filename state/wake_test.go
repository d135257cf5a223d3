package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// An endpoint set wakes its RPCs when some were given room, not otherwise, and waits
// for nobody to listen.
func TestWake(t *testing.T) {
	s := busySite(t, "a", "b")
	wake := make(chan struct{}, 1)
	s.guard(state.Guards{Wake: wake})
	woken := func() bool {
		select {
		case <-wake:
			return true
		default:
			return false
		}
	}
	rs := s.queued(3)
	require.False(t, woken())
	s.end("a", 1)
	s.end("b", 1)
	require.True(t, woken())
	require.False(t, woken(), "one signal is enough")
	require.Equal(t, []int{0, 1}, granted(rs))
	require.False(t, woken())
	rs[0].finish()
	require.True(t, woken())
	require.Equal(t, []int{2}, granted(rs))
	rs[1].finish()
	require.False(t, woken(), "nobody waits")

	s.guard(state.Guards{Wake: make(chan struct{})})
	s.openMany(1)
	rs = s.queued(1)
	rs = append(rs, s.queued(1)...)
	s.end(map[bool]string{true: "a", false: "b"}[len(s.leases["a"]) > 0], 1)
	require.Equal(t, []int{0}, granted(rs), "a signal that nobody takes is lost, the room is not")
}

// Each endpoint set wakes its own.
func TestWakeIsForTheRosterThatHasRoom(t *testing.T) {
	x := busySite(t, "a")
	y := newSiteOn(t, x.ledger)
	wakes := []chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	x.guard(state.Guards{Wake: wakes[0]})
	y.guard(state.Guards{Wake: wakes[1]})
	y.capped(1, "a")
	y.queued(1)
	rs := x.queued(1)
	x.end("a", 1)
	require.Empty(t, wakes[0])
	require.Len(t, wakes[1], 1)
	require.Empty(t, granted(rs))
}

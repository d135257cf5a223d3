package state_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// told is an endpoint of a ledger of its own, as snapshots show it.
type told struct {
	*testing.T
	set *state.EndpointSet
	v   *state.ReadySet
	m   *state.Member
}

func (s *told) endpoint() state.EndpointSnapshot {
	s.Helper()
	require.NoError(s, s.set.Ledger().Check())
	return s.set.Ledger().Snapshot().Endpoints[0]
}

// is checks the state, and since when it is so.
func (s *told) is(want state.EndpointState, since time.Duration) {
	s.Helper()
	n := s.endpoint()
	require.Equal(s, want, n.State)
	require.Equal(s, since.Seconds(), n.StateSeconds)
}

func inTold(t *testing.T, test func(*told)) {
	synctest.Test(t, func(t *testing.T) {
		set := state.Open("").NewEndpointSet("channel")
		t.Cleanup(set.Close)
		time.Sleep(time.Hour)
		s := &told{T: t, set: set, v: set.NewReadySet(0), m: set.Update(nil, []state.Identity{{Addrs: []string{"a"}}})[0]}
		test(s)
	})
}

// A snapshot says since when an endpoint is in its state. What does not change that, such
// as another weight, does not begin it anew.
func TestStatesSince(t *testing.T) {
	inTold(t, func(s *told) {
		s.is(state.EndpointNotReady, 0)
		time.Sleep(time.Minute)
		s.is(state.EndpointNotReady, time.Minute)
		s.v.Set(s.m, 1, nil)
		time.Sleep(time.Second)
		s.v.Set(s.m, 5, nil)
		s.is(state.EndpointReady, time.Second)
		s.v.Set(s.m, 0, nil)
		time.Sleep(2 * time.Second)
		s.is(state.EndpointDraining, 2*time.Second)
		d := s.set.Ledger().Drain("a")
		s.is(state.EndpointDraining, 2*time.Second)
		s.v.Set(s.m, 1, nil)
		time.Sleep(time.Second)
		s.is(state.EndpointDraining, 3*time.Second)
		d.End()
		time.Sleep(time.Second)
		s.is(state.EndpointReady, time.Second)
		d = s.set.Ledger().Drain("a")
		s.is(state.EndpointDraining, 0)
		d.End()
		l, _, ok := s.v.Acquire()
		require.True(s, ok)
		time.Sleep(3 * time.Second)
		s.v.Remove(s.m)
		time.Sleep(4 * time.Second)
		s.is(state.EndpointNotReady, 4*time.Second)
		s.set.Update([]*state.Member{s.m}, nil)
		time.Sleep(5 * time.Second)
		s.is(state.EndpointDeparted, 5*time.Second)
		l.Release()
	})
}

// With two channels the endpoint is ready since one could use it, and not ready since the
// last one could not.
func TestStateOfTwoChannelsSince(t *testing.T) {
	inTold(t, func(s *told) {
		other := s.set.Ledger().NewEndpointSet("other")
		defer other.Close()
		w, m := other.NewReadySet(0), other.Update(nil, []state.Identity{{Addrs: []string{"a"}}})[0]
		s.v.Set(s.m, 1, nil)
		time.Sleep(time.Second)
		w.Set(m, 1, nil)
		time.Sleep(time.Second)
		s.is(state.EndpointReady, 2*time.Second)
		s.v.Remove(s.m)
		time.Sleep(time.Second)
		w.Remove(m)
		time.Sleep(time.Second)
		s.is(state.EndpointNotReady, time.Second)
	})
}

// What the balancer tells is shown with its ages, and long errors are cut at a character.
func TestConnectivityIsShown(t *testing.T) {
	inTold(t, func(s *told) {
		require.Zero(s, s.endpoint().Members[0].Connectivity)
		s.m.SetConnectivity(state.Connectivity{State: "IDLE", Since: time.Now()})
		time.Sleep(time.Second)
		require.Equal(s, state.ConnectivitySnapshot{State: "IDLE", SinceSeconds: 1}, s.endpoint().Members[0].Connectivity)
		c := state.Connectivity{State: "CONNECTING", Since: time.Now()}
		c.Failed(errors.New("xx" + strings.Repeat("ö", 300)))
		s.m.SetConnectivity(c)
		time.Sleep(time.Hour)
		got := s.endpoint().Members[0].Connectivity
		require.Equal(s, 3600.0, got.LastErrorSeconds)
		require.LessOrEqual(s, len(got.LastError), state.MaxErrorText)
		require.True(s, utf8.ValidString(got.LastError) && strings.HasSuffix(got.LastError, "ö…"), got.LastError)
	})
}

// A connection has a number and an age, also where it has moved to another ledger; one
// that has ended has no age.
func TestConnectionsAreNumbered(t *testing.T) {
	inTold(t, func(s *told) {
		require.Zero(s, s.endpoint().Members[0].Connection.Number+uint64(s.endpoint().Members[0].Connection.AgeSeconds))
		s.m.NewConnection()
		c := s.m.NewConnection()
		time.Sleep(time.Minute)
		is := func(n state.EndpointSnapshot, number uint64, age float64) {
			s.Helper()
			require.Equal(s, []any{number, age}, []any{n.Members[0].Connection.Number, n.Members[0].Connection.AgeSeconds})
		}
		is(s.endpoint(), 2, 60)
		other := state.Open("").NewEndpointSet("other")
		defer other.Close()
		c = c.MoveTo(other.Update(nil, []state.Identity{{Addrs: []string{"a"}}})[0])
		is(other.Ledger().Snapshot().Endpoints[0], 2, 60)
		c.End()
		is(other.Ledger().Snapshot().Endpoints[0], 2, 0)
	})
}

// The highest in flight and the failed attempts stay when what they count is over.
func TestHighestAndFailures(t *testing.T) {
	inTold(t, func(s *told) {
		s.v.Set(s.m, 1, nil)
		var leases [3]state.Lease
		for i := range leases {
			leases[i], _, _ = s.v.Acquire()
		}
		leases[0].Fail()
		leases[0].Fail()
		leases[1].Succeed()
		leases[2].Release()
		n := s.endpoint()
		require.Equal(s, []int64{0, 3, 1}, []int64{n.InFlight, n.Highest, int64(n.Failures)})
	})
}

package picker

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
)

// recorded is an RPC with an explicit record.
func (s *env) recorded() rpc {
	r := s.rpc()
	r.ctx, _ = WithRecord(r.ctx)
	return r
}

// With an explicit record a pick counts as an attempt however it ended.
func TestExplicitRecordNotesEveryAttempt(t *testing.T) {
	s := unevenEnv(t, "abc")
	r := s.recorded()
	for _, want := range []string{"a", "b", "c", "a", "b"} {
		name, done := r.pick(s)
		require.Equal(t, want, name)
		done(success)
	}
	name, _ := r.pick(s)
	require.Equal(t, "c", name, "even one that has not ended")
	s.records(0)
	require.Equal(t, "ab", r.fails(s, 2))
	s.records(0)
}

// It takes precedence over what is known by the Done channel.
func TestExplicitRecordComesFirst(t *testing.T) {
	s := unevenEnv(t, "abc")
	r := s.rpc()
	require.Equal(t, "a", r.fails(s, 1))
	ctx, _ := WithRecord(r.ctx)
	explicit := rpc{ctx, r.end}
	require.Equal(t, "abc", explicit.fails(s, 3))
	require.Equal(t, "bc", r.fails(s, 2), "and does not change that")
	s.records(1)
	r.end()
	s.records(0)
}

// A record that has no attempt yet leaves the first one where it belongs: on
// the level of the picker, though that has no ready endpoint at this moment.
func TestFirstAttemptKeepsToItsLevel(t *testing.T) {
	s := newEnv(t, "a", "b")
	s.lost(0, "a")
	for name, r := range map[string]rpc{"none": s.rpc(), "explicit": s.recorded()} {
		_, err := New(s.readySets...).Pick(balancer.PickInfo{Ctx: r.ctx})
		require.Equal(t, balancer.ErrNoSubConnAvailable, err, "record: %s", name)
	}
}

// A pick that came to nothing is no attempt.
func TestPickWithoutAttemptIsNotNoted(t *testing.T) {
	for kind, explicit := range map[string]bool{"none": false, "explicit": true} {
		s := newEnv(t, "a", "b")
		r := s.rpc()
		if explicit {
			r = s.recorded()
		}
		name, done := r.pick(s)
		require.Equal(t, "a", name)
		done(notSent)
		name, done = r.pick(s)
		require.Equal(t, "a", name, "record: %s; a's connection was gone before the RPC had it", kind)
		done(notSent)

		s.children["a"].err = errors.New("no connection")
		_, err := New(s.readySets...).Pick(balancer.PickInfo{Ctx: r.ctx})
		require.Equal(t, s.children["a"].err, err)
		s.children["a"].err = nil
		require.Equal(t, "a", r.fails(s, 1), "record: %s; a's picker had an error", kind)
	}
}

// The record is cleared when all ready endpoints were tried, not when none is ready.
func TestRecordOutlastsAMomentWithoutEndpoints(t *testing.T) {
	s := unevenEnv(t, "ab")
	for kind, r := range map[string]rpc{"none": s.rpc(), "explicit": s.recorded()} {
		require.Equal(t, "a", r.fails(s, 1))
		s.lost(0, "a")
		s.lost(0, "b")
		_, err := New(s.readySets...).Pick(balancer.PickInfo{Ctx: r.ctx})
		require.Equal(t, balancer.ErrNoSubConnAvailable, err)
		s.ready(0, "a")
		s.ready(0, "b")
		require.Equal(t, "b", r.fails(s, 1), "record: %s", kind)
	}
}

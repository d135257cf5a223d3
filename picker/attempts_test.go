package picker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/state"
)

// endpointChild is an endpoint's picker, and what it picks.
type endpointChild struct {
	balancer.SubConn
	name string
	err  error
}

func (n *endpointChild) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{SubConn: n}, n.err
}

// env is an endpoint set with a ready set for each level.
type env struct {
	*testing.T
	ledger    *state.Ledger
	readySets []*state.ReadySet
	members   map[string]*state.Member
	children  map[string]*endpointChild
}

// newEnv lists the endpoints of each level by their one-letter names, all ready.
func newEnv(t *testing.T, levels ...string) *env {
	s := &env{T: t, ledger: state.Open(""), members: map[string]*state.Member{}, children: map[string]*endpointChild{}}
	r := s.ledger.NewEndpointSet("test")
	t.Cleanup(r.Close)
	t.Cleanup(func() { recorded.Store(false) })
	for level, names := range levels {
		s.readySets = append(s.readySets, r.NewReadySet(uint32(level)))
		for _, name := range names {
			s.members[string(name)] = r.Update(nil, []state.Identity{{Addrs: []string{string(name)}}})[0]
			s.children[string(name)] = &endpointChild{name: string(name)}
			s.ready(level, string(name))
		}
	}
	return s
}

func (s *env) ready(level int, name string) {
	s.readySets[level].Set(s.members[name], 1, struct{ balancer.Picker }{s.children[name]})
}

func (s *env) lost(level int, name string) { s.readySets[level].Remove(s.members[name]) }

// load holds n RPCs of others on the only ready endpoint.
func (s *env) load(level, n int) {
	for range n {
		lease, _, ok := s.readySets[level].Acquire()
		require.True(s, ok)
		s.Cleanup(func() { lease.Release() })
	}
}

// unevenEnv is an env of one level whose endpoints have 0, 1, 2 and so on in flight.
func unevenEnv(t *testing.T, names string) *env {
	s := newEnv(t, names)
	for _, name := range names {
		s.lost(0, string(name))
	}
	for i, name := range names {
		s.ready(0, string(name))
		s.load(0, i)
		s.lost(0, string(name))
	}
	for _, name := range names {
		s.ready(0, string(name))
	}
	return s
}

// rpc is the context of an RPC, of which the attempts' are made.
type rpc struct {
	ctx context.Context
	end context.CancelFunc
}

type attemptKey struct{}

func (s *env) rpc() rpc {
	ctx, end := context.WithCancel(s.Context())
	s.Cleanup(end)
	return rpc{ctx, end}
}

// pick makes one attempt's pick from the levels.
func (r rpc) pick(s *env) (string, func(balancer.DoneInfo)) {
	s.Helper()
	res, err := New(s.readySets...).Pick(balancer.PickInfo{Ctx: context.WithValue(r.ctx, attemptKey{}, new(int))})
	require.NoError(s, err)
	return res.SubConn.(*endpointChild).name, res.Done
}

// fails makes attempts that fail and returns where they were.
func (r rpc) fails(s *env, n int) (names string) {
	s.Helper()
	for range n {
		name, done := r.pick(s)
		done(failure)
		names += name
	}
	return names
}

var (
	failure = balancer.DoneInfo{Err: errors.New("failed"), BytesSent: true, BytesReceived: true}
	success = balancer.DoneInfo{BytesSent: true, BytesReceived: true}
	notSent = balancer.DoneInfo{} // the connection was gone before the RPC had it
)

// records checks how many RPCs have one.
func (s *env) records(want int) {
	s.Helper()
	count := func() (n int) {
		records.Range(func(any, any) bool { n++; return true })
		return n
	}
	require.Eventually(s, func() bool { return live.Load() == int64(want) && count() == want }, time.Minute, time.Millisecond,
		"want %d records, have %d, counted as %d", want, count(), live.Load())
}

func TestFailedEndpointsAreAvoided(t *testing.T) {
	s := unevenEnv(t, "abcd")
	r := s.rpc()
	require.Equal(t, "abcd", r.fails(s, 4))
	require.Equal(t, "abcda", r.fails(s, 5), "once all were tried they are tried again")
	require.Equal(t, "a", s.rpc().fails(s, 1), "another RPC")
	name, done := s.rpc().pick(s)
	require.Equal(t, "a", name)
	done(success)
	r.end()
}

func TestSingleEndpointIsTriedAgain(t *testing.T) {
	s := newEnv(t, "a")
	require.Equal(t, "aaa", s.rpc().fails(s, 3))
}

func TestLevelsAreTriedInOrder(t *testing.T) {
	s := newEnv(t, "a", "", "b", "c")
	require.Equal(t, "abcabc", s.rpc().fails(s, 6))
	s.lost(2, "b")
	require.Equal(t, "aca", s.rpc().fails(s, 3))
	s.lost(3, "c")
	require.Equal(t, "aaa", s.rpc().fails(s, 3))
}

// The record is the RPC's: made when an attempt fails, gone when the RPC is.
func TestRecordLivesFromFailureToEnd(t *testing.T) {
	s := newEnv(t, "ab")
	r := s.rpc()
	_, done := r.pick(s)
	s.records(0)
	done(failure)
	s.records(1)
	r.fails(s, 5)
	s.records(1)
	other := s.rpc()
	other.fails(s, 1)
	s.records(2)
	r.end()
	s.records(1)
	other.end()
	s.records(0)
}

func TestNoRecordWithoutFailure(t *testing.T) {
	s := newEnv(t, "ab")
	for _, info := range []balancer.DoneInfo{success, notSent} {
		r := s.rpc()
		_, done := r.pick(s)
		done(info)
		s.records(0)
	}
	r := s.rpc()
	_, done := r.pick(s)
	r.end()
	done(failure)
	require.Zero(t, live.Load(), "the RPC is over")

	for _, ctx := range []context.Context{nil, context.Background()} {
		res, err := New(s.readySets...).Pick(balancer.PickInfo{Ctx: ctx})
		require.NoError(t, err)
		res.Done(failure)
		require.Zero(t, live.Load(), "nothing tells the RPC from others")
	}
}

// A Done that is called twice neither makes a second record nor notes the endpoint
// of the RPC that has the lease's place by then.
func TestDoneTwiceNotesOnce(t *testing.T) {
	s := unevenEnv(t, "abc")
	r := s.rpc()
	_, done := r.pick(s)
	done(failure)
	other := s.rpc()
	require.Equal(t, "a", other.fails(s, 1))
	name, otherDone := other.pick(s)
	require.Equal(t, "b", name)
	done(failure)
	s.records(2)
	otherDone(success)
	require.Equal(t, "b", r.fails(s, 1))
	r.end()
	other.end()
	s.records(0)
	done(failure)
	require.Zero(t, live.Load())
}

// Many RPCs at once leave neither records nor leases.
func TestRecordsOfManyRPCs(t *testing.T) {
	s := newEnv(t, "abc", "de")
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			for range 100 {
				r := s.rpc()
				seen := map[string]bool{}
				for range 1 + rand.IntN(5) {
					name, done := r.pick(s)
					if seen[name] {
						s.Errorf("%s is tried again after %v", name, seen)
					}
					seen[name] = true
					callers.Go(func() { done(failure) }) // at any time
					done(failure)
				}
				r.end()
			}
		})
	}
	callers.Wait()
	s.records(0)
	require.Zero(t, s.ledger.Snapshot().InFlight)
}

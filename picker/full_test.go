package picker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/picker"
	"github.com/leastconn/grpc-leastconn/state"
)

// fullEnv is a picker whose only endpoint takes one RPC, which it has.
type fullEnv struct {
	*testing.T
	picker *picker.Picker
	ledger *state.Ledger
	child  *child
	wake   chan struct{}
	held   func(balancer.DoneInfo)
}

func newFullEnv(t *testing.T, maxQueued int) *fullEnv {
	s := &fullEnv{T: t, child: &child{}, wake: make(chan struct{}, 1)}
	v, l := readySetWith(t, state.Guards{MaxQueued: maxQueued, Wake: s.wake}, 1, s.child)
	s.picker, s.ledger = picker.New(v), l
	res, err := s.picker.Pick(balancer.PickInfo{Ctx: s.rpc()})
	require.NoError(t, err)
	s.held = res.Done
	t.Cleanup(func() { s.held(balancer.DoneInfo{}) })
	return s
}

// rpc is the context of an RPC of its own.
func (s *fullEnv) rpc() context.Context {
	ctx, cancel := context.WithCancel(s.Context())
	s.Cleanup(cancel)
	return ctx
}

// waits checks that the RPC waits, and how many do.
func (s *fullEnv) waits(ctx context.Context, all int64) {
	s.Helper()
	_, err := s.picker.Pick(balancer.PickInfo{Ctx: ctx})
	require.Equal(s, balancer.ErrNoSubConnAvailable, err)
	require.Equal(s, all, s.ledger.Snapshot().Waiting)
	require.NoError(s, s.ledger.Check())
}

// refused checks that the RPC may not wait.
func (s *fullEnv) refused(info balancer.PickInfo) {
	s.Helper()
	res, err := s.picker.Pick(info)
	require.Equal(s, codes.ResourceExhausted, status.Code(err), "%v", err)
	require.ErrorContains(s, err, "all endpoints are full (maxInFlight)")
	require.Zero(s, res)
}

// served makes the pick of an RPC that has room.
func (s *fullEnv) served(ctx context.Context) func(balancer.DoneInfo) {
	s.Helper()
	res, err := s.picker.Pick(balancer.PickInfo{Ctx: ctx})
	require.NoError(s, err)
	return res.Done
}

// woken reports whether the balancer was told to publish.
func (s *fullEnv) woken() bool {
	select {
	case <-s.wake:
		return true
	default:
		return false
	}
}

func TestFullEndpointsRefuse(t *testing.T) {
	s := newFullEnv(t, 0)
	s.refused(balancer.PickInfo{Ctx: s.rpc()})
	s.refused(balancer.PickInfo{})
	s.held(balancer.DoneInfo{})
	require.False(t, s.woken(), "nobody waits")
	s.served(s.rpc())(balancer.DoneInfo{})
}

// An RPC that nothing tells from others cannot wait.
func TestNamelessRPCsAreRefused(t *testing.T) {
	s := newFullEnv(t, 10)
	s.refused(balancer.PickInfo{})
	s.refused(balancer.PickInfo{Ctx: context.Background()})
	s.waits(s.rpc(), 1)
}

func TestFullEndpointsLetWait(t *testing.T) {
	s := newFullEnv(t, 2)
	one, two := s.rpc(), s.rpc()
	s.waits(one, 1)
	s.waits(two, 2)
	s.waits(context.WithValue(one, ctxKey{}, "another pick of it"), 2)
	s.refused(balancer.PickInfo{Ctx: s.rpc()})
	require.False(t, s.woken())

	s.held(balancer.DoneInfo{})
	require.True(t, s.woken())
	require.EqualValues(t, 1, s.ledger.Snapshot().InFlight, "it is the first one's")
	s.waits(two, 1)
	s.waits(s.rpc(), 2)
	done := s.served(one)
	require.False(t, s.woken())
	done(balancer.DoneInfo{})
	require.True(t, s.woken())
	s.served(two)(balancer.DoneInfo{})
	require.True(t, s.woken(), "a third one waits")
}

// What was granted to an RPC goes to the next one when the child has no
// connection for it.
func TestChildsErrorPassesTheRoomOn(t *testing.T) {
	s := newFullEnv(t, 2)
	one, two := s.rpc(), s.rpc()
	s.waits(one, 1)
	s.waits(two, 2)
	s.held(balancer.DoneInfo{})
	require.True(t, s.woken())
	s.child.err = errors.New("no connection")
	_, err := s.picker.Pick(balancer.PickInfo{Ctx: one})
	require.Equal(t, s.child.err, err)
	require.True(t, s.woken())
	s.child.err = nil
	s.served(two)(balancer.DoneInfo{})
	require.Zero(t, s.ledger.Snapshot().InFlight)
}

// Later ready sets are for what the first has no room for.
func TestFullReadySetSpills(t *testing.T) {
	l := state.Open("")
	r := l.NewEndpointSet("test")
	t.Cleanup(r.Close)
	first, second := &child{res: balancer.PickResult{SubConn: &subConn{}}}, &child{res: balancer.PickResult{SubConn: &subConn{}}}
	v, w := r.NewReadySet(0), r.NewReadySet(1)
	ms := r.Update(nil, []state.Identity{{Addrs: []string{"a"}}, {Addrs: []string{"b"}}})
	ms[0].SetMaxInFlight(1)
	w.Set(ms[1], 1, second)
	p := picker.New(v, w)
	_, err := p.Pick(balancer.PickInfo{Ctx: t.Context()})
	require.Equal(t, balancer.ErrNoSubConnAvailable, err, "the first ready set is empty, not full")
	v.Set(ms[0], 1, first)
	for _, want := range []*child{first, second, second} {
		res, err := p.Pick(balancer.PickInfo{Ctx: t.Context()})
		require.NoError(t, err)
		require.Same(t, want.res.SubConn, res.SubConn)
		t.Cleanup(func() { res.Done(balancer.DoneInfo{}) })
	}
}

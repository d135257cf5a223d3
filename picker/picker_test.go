package picker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/picker"
	"github.com/leastconn/grpc-leastconn/state"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// subConn is one that only its identity is asked of.
type subConn struct{ balancer.SubConn }

// child is an endpoint's picker: it answers as it is told.
type child struct {
	res   balancer.PickResult
	err   error
	infos []balancer.PickInfo // what it was asked
}

func (c *child) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	c.infos = append(c.infos, info)
	return c.res, c.err
}

// readySetOf returns a ready set with a ready endpoint for each child.
func readySetOf(t testing.TB, children ...balancer.Picker) (*state.ReadySet, *state.Ledger) {
	return readySetWith(t, state.Guards{}, 0, children...)
}

// readySetWith is readySetOf with guards and a cap for each endpoint.
func readySetWith(t testing.TB, g state.Guards, limit uint32, children ...balancer.Picker) (*state.ReadySet, *state.Ledger) {
	l := state.Open("")
	r := l.NewEndpointSet("test")
	t.Cleanup(r.Close)
	r.SetGuards(g)
	v := r.NewReadySet(0)
	eps := make([]state.Identity, len(children))
	for i := range eps {
		eps[i].Addrs = []string{string(rune('a' + i))}
	}
	for i, m := range r.Update(nil, eps) {
		m.SetMaxInFlight(limit)
		v.Set(m, 1, children[i])
	}
	return v, l
}

func TestPickIsCountedUntilDone(t *testing.T) {
	v, l := readySetOf(t, &child{}, &child{})
	p := picker.New(v)
	var dones []func(balancer.DoneInfo)
	for range 4 {
		res, err := p.Pick(balancer.PickInfo{})
		require.NoError(t, err)
		dones = append(dones, res.Done)
	}
	for _, n := range l.Snapshot().Endpoints {
		require.EqualValues(t, 2, n.InFlight)
	}
	for i, done := range dones {
		for _, info := range []balancer.DoneInfo{{Err: errors.New("the RPC failed")}, {}} {
			done(info)
			require.EqualValues(t, 3-i, l.Snapshot().InFlight)
		}
	}
}

func TestPickPassesOn(t *testing.T) {
	sc := &subConn{}
	md := metadata.Pairs("k", "v")
	c := &child{res: balancer.PickResult{SubConn: sc, Metadata: md}}
	v, _ := readySetOf(t, c)
	info := balancer.PickInfo{FullMethodName: "/chat/Talk", Ctx: context.WithValue(t.Context(), ctxKey{}, 1)}
	res, err := picker.New(v).Pick(info)
	require.NoError(t, err)
	require.Same(t, sc, res.SubConn, "unwrapped")
	require.Equal(t, []balancer.PickInfo{info}, c.infos)
	require.Equal(t, metadata.Pairs("k", "v"), res.Metadata)
	res.Done(balancer.DoneInfo{})
}

type ctxKey struct{}

// A value that is a SubConn is what RPCs get, counted like any.
func TestPickOfASubConn(t *testing.T) {
	v, l := readySetOf(t)
	m := v.EndpointSet().Update(nil, []state.Identity{{Addrs: []string{"a"}}})[0]
	sc := &subConn{}
	v.Set(m, 1, sc)
	p := picker.New(v)
	var dones []func(balancer.DoneInfo)
	for range 2 {
		res, err := p.Pick(balancer.PickInfo{Ctx: t.Context()})
		require.NoError(t, err)
		require.Same(t, sc, res.SubConn)
		dones = append(dones, res.Done)
	}
	for left := range 2 {
		require.EqualValues(t, 2-left, l.Snapshot().InFlight)
		dones[left](balancer.DoneInfo{})
	}
	require.Zero(t, l.Snapshot().InFlight)
}

// Each pick has the map that its own child gave it: none of an earlier pick.
func TestPickSharesNoMetadata(t *testing.T) {
	c := &child{}
	v, _ := readySetOf(t, c)
	p := picker.New(v)
	var got []metadata.MD
	for _, md := range []metadata.MD{metadata.Pairs("k", "1"), nil, metadata.Pairs("k", "2")} {
		c.res = balancer.PickResult{Metadata: md}
		res, err := p.Pick(balancer.PickInfo{})
		require.NoError(t, err)
		got = append(got, res.Metadata)
		if res.Metadata != nil {
			res.Metadata.Set("changed", "by one RPC")
		}
		res.Done(balancer.DoneInfo{})
	}
	require.Nil(t, got[1])
	require.Equal(t, []string{"2"}, got[2].Get("k"))
	require.Equal(t, []string{"1"}, got[0].Get("k"))
}

func TestChildsDoneIsCalledOnce(t *testing.T) {
	var got []balancer.DoneInfo
	c := &child{res: balancer.PickResult{Done: func(info balancer.DoneInfo) { got = append(got, info) }}}
	v, l := readySetOf(t, c)
	p := picker.New(v)
	first := balancer.DoneInfo{Err: errors.New("first"), BytesSent: true, Trailer: metadata.Pairs("t", "1")}
	res, err := p.Pick(balancer.PickInfo{})
	require.NoError(t, err)
	other, err := p.Pick(balancer.PickInfo{})
	require.NoError(t, err)
	res.Done(first)
	res.Done(balancer.DoneInfo{Err: errors.New("second")})
	res.Done(balancer.DoneInfo{})
	require.Equal(t, []balancer.DoneInfo{first}, got)
	require.EqualValues(t, 1, l.Snapshot().InFlight)
	other.Done(balancer.DoneInfo{})
	require.Len(t, got, 2)
}

// The count is down when the child hears of the end, so that what the child
// does next sees it.
func TestChildsDoneMayPick(t *testing.T) {
	c := &child{}
	v, l := readySetOf(t, c)
	p := picker.New(v)
	var seen int64 = -1
	c.res.Done = func(balancer.DoneInfo) { seen = l.Snapshot().InFlight }
	res, err := p.Pick(balancer.PickInfo{})
	require.NoError(t, err)
	res.Done(balancer.DoneInfo{})
	require.Zero(t, seen)
}

func TestChildsErrorGivesBack(t *testing.T) {
	for _, want := range []error{
		balancer.ErrNoSubConnAvailable,
		errors.New("no connection"),
		status.Error(codes.ResourceExhausted, "full"),
	} {
		c := &child{err: want, res: balancer.PickResult{SubConn: &subConn{}}}
		v, l := readySetOf(t, c)
		res, err := picker.New(v).Pick(balancer.PickInfo{})
		require.Equal(t, want, err, "as it is: gRPC tells these apart")
		require.Zero(t, res)
		require.Len(t, c.infos, 1)
		require.Zero(t, l.Snapshot().InFlight)
	}
}

func TestEmptyReadySetWaits(t *testing.T) {
	v, l := readySetOf(t)
	res, err := picker.New(v).Pick(balancer.PickInfo{})
	require.Equal(t, balancer.ErrNoSubConnAvailable, err)
	require.Zero(t, res)
	require.Zero(t, l.Snapshot().InFlight)
}

// A picker that was published long ago chooses among the members of now.
func TestOldPickerSeesTheReadySet(t *testing.T) {
	old := &subConn{}
	v, l := readySetOf(t, &child{res: balancer.PickResult{SubConn: old}})
	p := picker.New(v)
	held, err := p.Pick(balancer.PickInfo{})
	require.NoError(t, err)
	r := l.NewEndpointSet("other")
	t.Cleanup(r.Close)
	next := &subConn{}
	q := r.NewReadySet(0)
	for i, m := range r.Update(nil, []state.Identity{{Addrs: []string{"a"}}, {Addrs: []string{"b"}}}) {
		q.Set(m, 1, &child{res: balancer.PickResult{SubConn: []balancer.SubConn{old, next}[i]}})
	}
	res, err := picker.New(q).Pick(balancer.PickInfo{})
	require.NoError(t, err)
	require.Same(t, next, res.SubConn)
	held.Done(balancer.DoneInfo{})
	again, err := picker.New(q).Pick(balancer.PickInfo{})
	require.NoError(t, err)
	require.Same(t, old, again.SubConn, "what the old picker gave back counts for the new one")
	res.Done(balancer.DoneInfo{})
	again.Done(balancer.DoneInfo{})
}

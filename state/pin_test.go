package state

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
)

// A finished RPC that is kept holds its lease: that pins neither the ledger nor
// the endpoint.
func TestReleasedLeasePinsNothing(t *testing.T) {
	key := t.Name()
	kept, ledger, entry := released(t, key)
	requireGone(t, key, ledger)
	require.Nil(t, entry.Value())
	for _, lease := range kept {
		require.False(t, lease.Release())
	}
	runtime.KeepAlive(kept)
}

// released returns more leases than a ledger keeps notes of, all given back.
func released(t *testing.T, key string) ([]Lease, weak.Pointer[Ledger], weak.Pointer[endpoint]) {
	v := open(key)
	var leases []Lease
	for range 2 * maxFree {
		leases = append(leases, acquire(t, v))
	}
	ledger, n := weak.Make(v.ledger), weak.Make(leases[0].entry.endpoint)
	for _, lease := range leases {
		require.True(t, lease.Release())
	}
	v.set.Close()
	return leases, ledger, n
}

// A context whose RPC is over, over some attempts, pins nothing of where it was.
func TestCostPinsNothing(t *testing.T) {
	key := t.Name()
	ctx, ledger := costly(t, key)
	requireGone(t, key, ledger)
	CostOf(ctx).Set(7)
	runtime.KeepAlive(ctx)
}

func costly(t *testing.T, key string) (context.Context, weak.Pointer[Ledger]) {
	v := open(key)
	ctx := WithCost(t.Context(), 5)
	for range 2 {
		lease, _, outcome := v.set.AcquireOrQueue(ctx, nil, v)
		require.Equal(t, Chosen, outcome)
		CostOf(ctx).Set(6)
		require.True(t, lease.Release())
	}
	ledger := weak.Make(v.ledger)
	v.set.Close()
	return ctx, ledger
}

// A lease of an endpoint that has left pins it no longer than it lives, while the
// ledger lives on.
func TestDepartedEndpointGoesWithItsLease(t *testing.T) {
	v := open(t.Name())
	lease := acquire(t, v)
	n := weak.Make(lease.entry.endpoint)
	for m := range v.set.members {
		v.set.Update([]*Member{m}, nil)
	}
	runtime.GC()
	require.NotNil(t, n.Value())
	require.True(t, lease.Release())
	require.True(t, collected(func() bool { return n.Value() == nil }))
	require.Empty(t, v.ledger.Snapshot().Endpoints)
	runtime.KeepAlive(lease)
}

// A value that left its ready set is not kept by it.
func TestValueGoesWithItsMember(t *testing.T) {
	v := open("")
	var m *Member
	for m = range v.set.members {
	}
	for _, leave := range []func(){
		func() { v.Remove(m) },
		func() { v.Set(m, 1, nil) },
		func() { v.Set(m, 0, nil) },
		func() { v.set.Update([]*Member{m}, nil) },
	} {
		value := new([64]byte)
		p := weak.Make(value)
		v.Set(m, 1, value)
		value = nil
		leave()
		require.True(t, collected(func() bool { return p.Value() == nil }))
	}
	runtime.KeepAlive(v)
}

// Balancers come and go on a ledger that lives on: a closed endpoint set is not kept,
// nor are its ready sets, what they held and what it was called.
func TestClosedEndpointSetGoes(t *testing.T) {
	l := newLedger("")
	closed := func() (weak.Pointer[EndpointSet], weak.Pointer[ReadySet]) {
		r := l.NewEndpointSet("test")
		defer r.Close()
		v := r.NewReadySet(0)
		m := r.Update(nil, []Identity{{Addrs: []string{"a"}}})[0]
		v.Set(m, 1, "a")
		acquire(t, v).Release()
		return weak.Make(r), weak.Make(v)
	}
	r, v := closed()
	require.True(t, collected(func() bool { return r.Value() == nil && v.Value() == nil }))
	require.Empty(t, l.sets)
	runtime.KeepAlive(l)
}

// Nor is a member that started slowly.
func TestMemberThatStartedSlowlyGoes(t *testing.T) {
	v := open("")
	v.set.SetGuards(Guards{SlowStart: SlowStart{Window: time.Hour, MinWeightPercent: 10, Aggression: 1}})
	newcomer := func() weak.Pointer[Member] {
		m := v.set.Update(nil, []Identity{{Addrs: []string{"b"}}})[0]
		v.Set(m, 1, "b")
		require.True(t, m.ramping())
		v.set.Update([]*Member{m}, nil)
		return weak.Make(m)
	}
	m := newcomer()
	require.True(t, collected(func() bool { return m.Value() == nil }))
	runtime.KeepAlive(v)
}

// Levels come and go in an endpoint set that lives on.
func TestClosedReadySetGoes(t *testing.T) {
	r := newLedger("").NewEndpointSet("test")
	closed := func() weak.Pointer[ReadySet] {
		v := r.NewReadySet(0)
		v.Close()
		return weak.Make(v)
	}
	for range 2 {
		v := closed()
		require.True(t, collected(func() bool { return v.Value() == nil }))
		r.NewReadySet(1) // which stays
	}
	runtime.KeepAlive(r)
}

// A burst of leases is not kept room for for ever: the ledger keeps some lease entries
// for the next leases, and these are used again.
func TestFreeEntriesAreBounded(t *testing.T) {
	v := open("")
	burst := func(n int) {
		var leases []Lease
		for range n {
			leases = append(leases, acquire(t, v))
		}
		for _, l := range leases {
			require.True(t, l.Release())
		}
	}
	burst(10)
	require.Len(t, v.set.counters.free, 10)
	burst(10)
	require.Len(t, v.set.counters.free, 10)
	burst(3 * maxFree)
	require.Len(t, v.set.counters.free, maxFree)
	require.NoError(t, v.ledger.Check())
}

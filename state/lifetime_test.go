package state

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
)

// collected runs the collector until the condition holds, and reports whether
// it did in time.
func collected(done func() bool) bool {
	for deadline := time.Now().Add(time.Minute); ; {
		runtime.GC()
		if done() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		runtime.Gosched()
	}
}

// registered reports whether the registry has an entry for the key, or for the
// ledger, collected or not.
func registered(key string, p weak.Pointer[Ledger]) bool {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	_, keyed := registry.keyed[key]
	_, all := registry.all[p]
	return keyed || all
}

// requireGone waits until the ledger is collected and the registry has forgotten
// it.
func requireGone(t *testing.T, key string, p weak.Pointer[Ledger]) {
	t.Helper()
	require.True(t, collected(func() bool { return p.Value() == nil && !registered(key, p) }))
}

// open returns a ready set with one ready endpoint on the ledger of the key.
func open(key string) *ReadySet {
	r := Open(key).NewEndpointSet("test")
	v := r.NewReadySet(0)
	v.Set(r.Update(nil, []Identity{{Addrs: []string{"a"}}})[0], 1, "a")
	return v
}

func acquire(t *testing.T, v *ReadySet) Lease {
	lease, _, ok := v.Acquire()
	require.True(t, ok)
	return lease
}

func TestLedgerOfAKeyIsOne(t *testing.T) {
	l := Open(t.Name())
	require.Same(t, l, Open(t.Name()))
	require.NotSame(t, l, Open(t.Name()+"2"))
	require.Equal(t, t.Name(), l.Key())
	runtime.KeepAlive(l)
}

func TestPrivateLedgersAreDistinct(t *testing.T) {
	a, b := Open(""), Open("")
	require.NotSame(t, a, b)
	require.Empty(t, a.Key())
	ls := Ledgers() // also those of other tests, whose clocks may tick: only pointers are compared
	require.True(t, slices.Contains(ls, a) && slices.Contains(ls, b))
}

// A ledger that nobody holds is collected, and the registry forgets it.
func TestLedgerWithoutHolderGoes(t *testing.T) {
	for _, key := range []string{t.Name(), ""} {
		p := weak.Make(Open(key))
		require.True(t, p.Value() == nil || registered(key, p))
		requireGone(t, key, p)
	}
}

// Ledgers that were used leave nothing in the registry.
func TestUsedLedgersGo(t *testing.T) {
	used := map[weak.Pointer[Ledger]]string{}
	for i := range 100 {
		v := open(fmt.Sprint(t.Name(), i%50, "/"[:i%2]))
		acquire(t, v).Release()
		v.set.Close()
		used[weak.Make(v.ledger)] = v.ledger.key
	}
	for p, key := range used {
		requireGone(t, key, p)
	}
}

// A key whose ledger is collected gets a new one, which the clean-up of the old
// one leaves alone.
func TestKeyIsUsedAgain(t *testing.T) {
	key := t.Name()
	for range 5 {
		p := weak.Make(Open(key))
		require.True(t, collected(func() bool { return p.Value() == nil }))
		l := Open(key) // the clean-up may run before or after
		require.True(t, collected(func() bool {
			registry.mu.Lock()
			defer registry.mu.Unlock()
			_, ok := registry.all[p]
			return !ok
		}))
		require.Same(t, l, Open(key))
		runtime.KeepAlive(l)
	}
}

func TestLateCleanUpLeavesTheNewLedger(t *testing.T) {
	key := t.Name()
	p := weak.Make(newLedger(key))
	l := Open(key)
	forget(key, p)
	require.Same(t, l, Open(key))
}

// hold counts leases on a ledger that nobody else holds.
func hold(t *testing.T, key string, n int) []Lease {
	v := open(key)
	var leases []Lease
	for range n {
		leases = append(leases, acquire(t, v))
	}
	v.set.Close()
	return leases
}

// Live leases alone hold the ledger: who opens the key finds the counts, and
// what was released before is gone when they end.
func TestLedgerLivesByItsLeases(t *testing.T) {
	key := t.Name()
	leases := hold(t, key, 3)
	for range 5 {
		runtime.GC()
	}
	v := open(key)
	require.EqualValues(t, 3, v.ledger.Snapshot().Endpoints[0].InFlight)
	p := weak.Make(v.ledger)
	for i, lease := range leases {
		require.True(t, lease.Release())
		require.EqualValues(t, 2-i, v.ledger.Snapshot().InFlight)
	}
	v = nil
	requireGone(t, key, p)
	runtime.KeepAlive(leases)
}

// An endpoint set or a ready set alone, or a picker that holds one, keeps the ledger.
func TestLedgerLivesByItsSets(t *testing.T) {
	for name, holder := range map[string]func(v *ReadySet) any{
		"endpoint set": func(v *ReadySet) any { return v.set },
		"ready set":    func(v *ReadySet) any { return v },
	} {
		t.Run(name, func(t *testing.T) {
			key := t.Name()
			kept := holder(open(key))
			for range 3 {
				runtime.GC()
			}
			require.Len(t, Open(key).Snapshot().Endpoints, 1)
			p := weak.Make(Open(key))
			runtime.KeepAlive(kept)
			kept = nil
			requireGone(t, key, p)
		})
	}
}

// holdGuarded leaves a ledger that has a penalty, slow starts, RPCs that wait and some
// that were granted room, and that nobody but a lease holds.
func holdGuarded(t *testing.T, key string, ctxs []context.Context) Lease {
	v := open(key)
	v.set.SetGuards(Guards{FailurePenalty: time.Hour, SlowStart: SlowStart{Window: time.Hour, MinWeightPercent: 50, Aggression: 1}, MaxQueued: 9})
	for i, m := range v.set.Update(nil, []Identity{{Addrs: []string{"b"}}, {Addrs: []string{"c"}}}) {
		v.Set(m, 1, i)
	}
	var leases []Lease
	for range 12 {
		leases = append(leases, acquire(t, v))
	}
	last := leases[11] // the first one to fail is of its endpoint, so that two have room
	failed := slices.IndexFunc(leases, func(lease Lease) bool { return lease.entry.endpoint == last.entry.endpoint })
	require.Less(t, failed, 11)
	require.True(t, leases[failed].Fail())
	for m := range v.set.members {
		m.SetMaxInFlight(1)
	}
	for _, ctx := range ctxs {
		_, _, outcome := v.set.AcquireOrQueue(ctx, nil, v)
		require.Equal(t, Queued, outcome)
	}
	for _, lease := range slices.Delete(leases, failed, failed+1)[:10] {
		require.True(t, lease.Release())
	}
	require.NoError(t, v.ledger.Check())
	require.Len(t, v.ledger.penalized, 1)
	require.Equal(t, 2, v.ledger.ramps)
	require.Equal(t, 3, v.set.queue.waiting())
	v.set.Close()
	return last
}

// Guards do not hold a ledger: when its endpoint sets are closed and its leases back,
// no penalty, no ramp, no clock and no RPC that waited does, be it still alive.
func TestGuardsHoldNoLedger(t *testing.T) {
	key := t.Name()
	ctxs := make([]context.Context, 5)
	for i := range ctxs {
		ctx, end := context.WithCancel(context.Background())
		defer end()
		ctxs[i] = ctx
	}
	lease := holdGuarded(t, key, ctxs)
	p := weak.Make(Open(key))
	require.EqualValues(t, 1, Open(key).Snapshot().InFlight)
	lease.Fail()
	requireGone(t, key, p)
	runtime.KeepAlive(lease)
	runtime.KeepAlive(ctxs)
}

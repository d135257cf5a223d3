package state

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What an RPC tried before its channel moved to another resource key belongs to a
// ledger whose mutex nobody holds here.
func TestTriesOfAnotherLedgerDuringStartup(t *testing.T) {
	l, elsewhere := newLedger(""), newLedger("")
	r, other := l.NewEndpointSet("x"), elsewhere.NewEndpointSet("y")
	t.Cleanup(r.Close)
	t.Cleanup(other.Close)
	v := r.NewReadySet(0)
	ms := r.Update(nil, []Identity{{Addrs: []string{"a"}}, {Addrs: []string{"b"}}})
	v.Set(ms[0], 1, "a")
	v.SetConnecting(ms[1], 1, time.Now().Add(time.Hour))
	w := other.NewReadySet(0)
	w.Set(other.Update(nil, []Identity{{Addrs: []string{"a"}}})[0], 1, "a")
	lease := acquire(t, w)
	var tried Tried
	tried.Add(lease)

	first, _, outcome := r.AcquireOrQueue(t.Context(), nil, v)
	require.Equal(t, Chosen, outcome)
	var changes sync.WaitGroup
	changes.Go(func() {
		for range 100 {
			third := elsewhere.NewEndpointSet("z")
			third.Update(nil, []Identity{{Addrs: []string{"a"}}})
			third.Close()
		}
	})
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		got, _, outcome := r.AcquireOrQueue(ctx, &tried, v)
		require.Contains(t, []Outcome{Chosen, Reserved}, outcome)
		got.Release()
		cancel()
	}
	changes.Wait()
	first.Release()
	lease.Release()
}

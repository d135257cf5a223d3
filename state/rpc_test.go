package state_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// nobody is the context of an RPC that has none.
var nobody context.Context

// rpc is an RPC that may have to wait. It ends when the test does, at the latest.
type rpc struct {
	*env
	ctx   context.Context
	end   context.CancelFunc
	lease state.Lease
	tried *state.Tried // nil unless a test uses it
	on    string       // the endpoint that it was given
}

func (e *env) rpc() *rpc {
	r := &rpc{env: e}
	r.ctx, r.end = context.WithCancel(context.Background())
	e.Cleanup(r.end)
	return r
}

// acquire is the RPC's pick, in the environment's ready set or in others.
func (r *rpc) acquire(sets ...*state.ReadySet) state.Outcome {
	r.Helper()
	if len(sets) == 0 {
		sets = []*state.ReadySet{r.readySet}
	}
	lease, value, outcome := r.endpointSet.AcquireOrQueue(r.ctx, nil, sets...)
	require.Equal(r, outcome == state.Chosen, value != nil)
	if outcome == state.Chosen {
		r.lease, r.on = lease, value.(string)
		r.leases[r.on] = append(r.leases[r.on], lease)
	}
	require.NoError(r, r.ledger.Check())
	return outcome
}

// finish gives back what the RPC was given.
func (r *rpc) finish() {
	r.Helper()
	i := slices.Index(r.leases[r.on], r.lease)
	r.leases[r.on] = slices.Delete(r.leases[r.on], i, i+1)
	require.True(r, r.lease.Release())
}

// cancel ends an RPC's context.
func (r *rpc) cancel() {
	r.Helper()
	r.end()
	synctest.Wait()
	require.NoError(r, r.ledger.Check())
}

// queued returns n RPCs that wait, in order of arrival.
func (e *env) queued(n int) []*rpc {
	e.Helper()
	rs := make([]*rpc, n)
	for i := range rs {
		rs[i] = e.rpc()
		require.Equal(e, state.Queued, rs[i].acquire())
	}
	return rs
}

// served returns which of the RPCs have room now: they take it up.
func served(rs []*rpc) []int {
	var got []int
	for i, r := range rs {
		if r.on == "" && r.acquire() == state.Chosen {
			got = append(got, i)
		}
	}
	return got
}

func (e *env) waiting() int { return int(e.ledger.Snapshot().Waiting) }

// busyEnv has endpoints with caps of 1, all of them busy.
func busyEnv(t *testing.T, addrs ...string) *env {
	e := newEnv(t)
	e.guard(state.Guards{})
	e.capped(1, addrs...)
	e.openMany(len(addrs))
	return e
}

// retry is a later attempt of an RPC that may not wait. It returns where it goes.
func (e *env) retry(tried *state.Tried) string {
	e.Helper()
	lease, value, outcome := e.endpointSet.AcquireOrQueue(nobody, tried, e.readySet)
	require.Equal(e, state.Chosen, outcome)
	addr := value.(string)
	e.leases[addr] = append(e.leases[addr], lease)
	require.NoError(e, e.ledger.Check())
	return addr
}

// triedOf returns an RPC's attempt that some live leases are of.
func triedOf(leases ...state.Lease) *state.Tried {
	tried := new(state.Tried)
	for _, l := range leases {
		tried.Add(l)
	}
	return tried
}

package state_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// inTime runs a test of an empty site whose time is virtual.
func inTime(t *testing.T, test func(s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newSite(t)) })
}

// pass lets time go by and what is due then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// nobody is the context of an RPC that has none.
var nobody context.Context

// rpc is an RPC of a site that may have to wait. It ends when the test does, at
// the latest.
type rpc struct {
	*site
	ctx   context.Context
	end   context.CancelFunc
	lease state.Lease
	on    string // the endpoint that it was given
}

func (s *site) rpc() *rpc {
	r := &rpc{site: s}
	r.ctx, r.end = context.WithCancel(context.Background())
	s.Cleanup(r.end)
	return r
}

// turn asks for the RPC's turn, in the site's ready set or in others.
func (r *rpc) turn(views ...*state.ReadySet) state.Outcome {
	r.Helper()
	if len(views) == 0 {
		views = []*state.ReadySet{r.view}
	}
	lease, value, outcome := r.roster.AcquireOrQueue(r.ctx, nil, views...)
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

// queued returns n RPCs that wait, in order of arrival.
func (s *site) queued(n int) []*rpc {
	s.Helper()
	rs := make([]*rpc, n)
	for i := range rs {
		rs[i] = s.rpc()
		require.Equal(s, state.Queued, rs[i].turn())
	}
	return rs
}

// granted returns which of the RPCs have room now: they take it up.
func granted(rs []*rpc) []int {
	var got []int
	for i, r := range rs {
		if r.on == "" && r.turn() == state.Chosen {
			got = append(got, i)
		}
	}
	return got
}

func (s *site) waiting() int { return int(s.ledger.Snapshot().Waiting) }

// guard sets the endpoint set's guards: as many RPCs may wait as like.
func (s *site) guard(g state.Guards) {
	if g.MaxQueued == 0 {
		g.MaxQueued = 1 << 20
	}
	s.roster.SetGuards(g)
}

// capped lists endpoints and makes them ready, each with a cap.
func (s *site) capped(limit uint32, addrs ...string) {
	s.list(addrs...)
	for _, a := range addrs {
		s.members[a].SetMaxInFlight(limit)
		s.set(a, 1)
	}
}

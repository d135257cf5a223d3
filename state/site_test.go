package state_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// site is one endpoint set with one ready set of a ledger. Its endpoints have one address
// each, which is their value, too. What it acquired is released when the test
// ends, and then nothing must be left of it.
type site struct {
	*testing.T
	name    string // of the endpoint set
	ledger  *state.Ledger
	roster  *state.EndpointSet
	view    *state.ReadySet
	members map[string]*state.Member
	leases  map[string][]state.Lease // by address
	second  *state.ReadySet          // of a lower level, where a test has one
}

// newSite returns an empty site on a ledger of its own.
func newSite(t *testing.T) *site { return newSiteOn(t, state.Open("")) }

func newSiteOn(t *testing.T, l *state.Ledger) *site {
	name := fmt.Sprint(t.Name(), " ", len(l.Snapshot().EndpointSets))
	r := l.NewEndpointSet(name)
	s := &site{T: t, name: name, ledger: l, roster: r, view: r.NewReadySet(0), members: map[string]*state.Member{}, leases: map[string][]state.Lease{}}
	t.Cleanup(s.close)
	return s
}

func (s *site) close() {
	s.roster.Close()
	for addr, ls := range s.leases {
		for _, l := range ls {
			require.True(s, l.Release(), addr)
		}
	}
	s.leases = nil
	require.NoError(s, s.ledger.Check())
}

// list adds endpoints to the endpoint set, in no ready set.
func (s *site) list(addrs ...string) {
	eps := make([]state.Identity, len(addrs))
	for i, a := range addrs {
		eps[i].Addrs = []string{a}
	}
	for i, m := range s.roster.Update(nil, eps) {
		s.members[addrs[i]] = m
	}
}

// add lists endpoints and makes them ready with equal weights.
func (s *site) add(addrs ...string) {
	s.list(addrs...)
	for _, a := range addrs {
		s.set(a, 1)
	}
}

func (s *site) set(addr string, weight uint32) { s.view.Set(s.members[addr], weight, addr) }

// remove takes an endpoint off the list.
func (s *site) remove(addr string) {
	s.roster.Update([]*state.Member{s.members[addr]}, nil)
	delete(s.members, addr)
}

// open acquires a lease, keeps it and returns where it went.
func (s *site) open() string {
	s.Helper()
	return s.keep(s.view)
}

func (s *site) keep(v *state.ReadySet) string {
	s.Helper()
	lease, value, ok := v.Acquire()
	require.True(s, ok)
	addr := value.(string)
	s.leases[addr] = append(s.leases[addr], lease)
	return addr
}

// openMany opens n and returns how many went where.
func (s *site) openMany(n int) map[string]int {
	s.Helper()
	got := map[string]int{}
	for range n {
		got[s.open()]++
	}
	return got
}

// load puts n leases on an endpoint, whatever its turn: through a ready set that has
// nothing else. It takes the endpoint out of the site's ready set.
func (s *site) load(addr string, n int) {
	s.Helper()
	only := s.roster.NewReadySet(9)
	only.Set(s.members[addr], 1, addr)
	for range n {
		s.keep(only)
	}
	only.Remove(s.members[addr])
}

// end releases the endpoint's oldest n leases.
func (s *site) end(addr string, n int) {
	s.Helper()
	for _, l := range s.leases[addr][:n] {
		require.True(s, l.Release())
	}
	s.leases[addr] = s.leases[addr][n:]
}

// call acquires a lease, releases it and returns where it went.
func (s *site) call() string {
	s.Helper()
	lease, value, ok := s.view.Acquire()
	require.True(s, ok)
	require.True(s, lease.Release())
	return value.(string)
}

// round returns where the next n serial calls go.
func (s *site) round(n int) []string {
	s.Helper()
	got := make([]string, n)
	for i := range got {
		got[i] = s.call()
	}
	return got
}

// loads returns the leases in flight by first address.
func (s *site) loads() map[string]int {
	got := map[string]int{}
	for _, n := range s.ledger.Snapshot().Endpoints {
		got[n.Addresses[0]] = int(n.InFlight)
	}
	return got
}

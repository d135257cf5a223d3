package state_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// env is an endpoint set with one ready set. Its endpoints have one address each,
// which is their value, too. When the test ends, what it acquired is released, and
// nothing must be left of it.
type env struct {
	*testing.T
	name        string // of the endpoint set
	ledger      *state.Ledger
	endpointSet *state.EndpointSet
	readySet    *state.ReadySet
	second      *state.ReadySet // of a lower level, where a test has one
	members     map[string]*state.Member
	leases      map[string][]state.Lease // by address
}

// newEnv returns an empty environment with a ledger of its own.
func newEnv(t *testing.T) *env { return newEnvOn(t, state.Open("")) }

func newEnvOn(t *testing.T, l *state.Ledger) *env {
	return newEnvNamed(t, l, fmt.Sprint(t.Name(), " ", len(l.Snapshot().EndpointSets)))
}

func newEnvNamed(t *testing.T, l *state.Ledger, name string) *env {
	set := l.NewEndpointSet(name)
	e := &env{
		T: t, name: name, ledger: l, endpointSet: set, readySet: set.NewReadySet(0),
		members: map[string]*state.Member{}, leases: map[string][]state.Lease{},
	}
	t.Cleanup(e.close)
	return e
}

// inTime runs a test of an empty environment whose time is virtual.
func inTime(t *testing.T, test func(e *env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newEnv(t)) })
}

// pass lets time go by and what is due then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (e *env) close() {
	e.endpointSet.Close()
	for addr, ls := range e.leases {
		for _, l := range ls {
			require.True(e, l.Release(), addr)
		}
	}
	e.leases = nil
	require.NoError(e, e.ledger.Check())
}

// list adds endpoints to the endpoint set, in no ready set.
func (e *env) list(addrs ...string) {
	eps := make([]state.Identity, len(addrs))
	for i, a := range addrs {
		eps[i].Addrs = []string{a}
	}
	for i, m := range e.endpointSet.Update(nil, eps) {
		e.members[addrs[i]] = m
	}
}

// add lists endpoints and makes them ready with equal weights.
func (e *env) add(addrs ...string) {
	e.list(addrs...)
	for _, a := range addrs {
		e.set(a, 1)
	}
}

func (e *env) set(addr string, weight uint32) { e.readySet.Set(e.members[addr], weight, addr) }

// remove takes an endpoint off the list.
func (e *env) remove(addr string) {
	e.endpointSet.Update([]*state.Member{e.members[addr]}, nil)
	delete(e.members, addr)
}

// guard sets the endpoint set's guards: as many RPCs may wait as like.
func (e *env) guard(g state.Guards) {
	if g.MaxQueued == 0 {
		g.MaxQueued = 1 << 20
	}
	e.endpointSet.SetGuards(g)
}

// capped lists endpoints and makes them ready, each with a cap.
func (e *env) capped(limit uint32, addrs ...string) {
	e.list(addrs...)
	for _, a := range addrs {
		e.members[a].SetMaxInFlight(limit)
		e.set(a, 1)
	}
}

// open acquires a lease, keeps it and returns where it went.
func (e *env) open() string {
	e.Helper()
	return e.keep(e.readySet)
}

func (e *env) keep(v *state.ReadySet) string {
	e.Helper()
	lease, value, ok := v.Acquire()
	require.True(e, ok)
	addr := value.(string)
	e.leases[addr] = append(e.leases[addr], lease)
	return addr
}

// openMany opens n and returns how many went where.
func (e *env) openMany(n int) map[string]int {
	e.Helper()
	got := map[string]int{}
	for range n {
		got[e.open()]++
	}
	return got
}

// load puts n leases on an endpoint, whatever its turn: through a ready set that has
// nothing else. It takes the endpoint out of the environment's ready set.
func (e *env) load(addr string, n int) {
	e.Helper()
	only := e.endpointSet.NewReadySet(9)
	only.Set(e.members[addr], 1, addr)
	for range n {
		e.keep(only)
	}
	only.Remove(e.members[addr])
}

// end releases the endpoint's oldest n leases.
func (e *env) end(addr string, n int) {
	e.Helper()
	for _, l := range e.leases[addr][:n] {
		require.True(e, l.Release())
	}
	e.leases[addr] = e.leases[addr][n:]
}

// fail ends the endpoint's oldest n leases as failures.
func (e *env) fail(addr string, n int) {
	e.Helper()
	for _, l := range e.leases[addr][:n] {
		require.True(e, l.Fail())
	}
	e.leases[addr] = e.leases[addr][n:]
	require.NoError(e, e.ledger.Check())
}

// call acquires a lease, releases it and returns where it went.
func (e *env) call() string {
	e.Helper()
	lease, value, ok := e.readySet.Acquire()
	require.True(e, ok)
	require.True(e, lease.Release())
	return value.(string)
}

// round returns where the next n serial calls go.
func (e *env) calls(n int) []string {
	e.Helper()
	got := make([]string, n)
	for i := range got {
		got[i] = e.call()
	}
	return got
}

// loads returns the leases in flight by first address.
func (e *env) loads() map[string]int {
	got := map[string]int{}
	for _, n := range e.ledger.Snapshot().Endpoints {
		got[n.Addresses[0]] = int(n.InFlight)
	}
	return got
}

// penalties returns the units of penalty by first address, none left out.
func (e *env) penalties() map[string]int {
	got := map[string]int{}
	for _, n := range e.ledger.Snapshot().Endpoints {
		if n.Penalty > 0 {
			got[n.Addresses[0]] = int(n.Penalty)
		}
	}
	return got
}

// share returns the part of its weight that the endpoint has in the endpoint set.
func (e *env) share(addr string) float64 {
	e.Helper()
	require.NoError(e, e.ledger.Check())
	for _, n := range e.ledger.Snapshot().Endpoints {
		for _, m := range n.Members {
			if n.Addresses[0] == addr && m.EndpointSet == e.name {
				return m.SlowStartFactor
			}
		}
	}
	require.Fail(e, "not listed: "+addr)
	return 0
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("n%04d", i)
	}
	return all
}

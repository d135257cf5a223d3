package state_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// drained returns which addresses are, by the snapshot.
func (e *env) drained() (addrs []string) {
	for _, n := range e.ledger.Snapshot().Endpoints {
		if n.Drained {
			addrs = append(addrs, n.Address())
		}
	}
	return addrs
}

// A drain holds whatever resolvers and connections do, in all endpoint sets, until each
// has ended.
func TestDrainOutlastsWhatChanges(t *testing.T) {
	e := newEnv(t)
	other := newEnvOn(t, e.ledger)
	e.add("a", "b")
	e.openMany(4)
	first, second := e.ledger.Drain("a"), e.ledger.Drain("a")
	for _, step := range []struct {
		name    string
		happens func()
	}{
		{"nothing", func() {}},
		{"a weight", func() { e.set("a", 7) }},
		{"drain by weight", func() { e.set("a", 0); e.set("a", 3) }},
		{"a flap", func() { e.readySet.Remove(e.members["a"]); e.set("a", 1) }},
		{"a failure", func() { e.members["a"].StartSlowly(); e.set("a", 1) }},
		{"a new connection", func() { e.members["a"].NewConnection() }},
		{"another channel", func() { other.add("a", "b") }},
		{"another guard", func() { e.guard(linear); e.guard(state.Guards{}) }},
		{"another cap", func() { e.members["a"].SetMaxInFlight(100) }},
		{"left by one", func() { e.remove("a") }},
		{"and listed there", func() { e.add("a") }},
		{"the first drain ends", func() { first.End(); first.End() }},
	} {
		step.happens()
		require.NoError(t, e.ledger.Check(), step.name)
		require.Equal(t, []string{"a"}, e.drained(), step.name)
		require.Equal(t, []string{"b", "b", "b"}, e.calls(3), step.name)
	}
	require.Equal(t, []string{"b"}, other.calls(1))
	second.End()
	require.Empty(t, e.drained())
	require.Contains(t, e.calls(2), "a")
	require.Contains(t, other.calls(2), "a")
	require.Equal(t, 2, e.loads()["a"], "what was in flight lives on")
}

// A drain ends with the last that lists the endpoint, though RPCs of it live, and what is
// left of it changes no later one.
func TestDrainEndsWithTheList(t *testing.T) {
	e := newEnv(t)
	e.add("a", "b")
	e.openMany(2)
	require.Nil(t, e.ledger.Drain("c"))
	old := e.ledger.Drain("a")
	e.remove("a")
	require.Equal(t, 1, e.loads()["a"])
	require.Nil(t, e.ledger.Drain("a"), "nobody lists it")
	e.add("a")
	require.Empty(t, e.drained())
	e.ledger.Drain("a")
	old.End()
	require.Equal(t, []string{"a"}, e.drained())
}

// An id means its endpoint, an address all that have it.
func TestDrainByIDAndByAddress(t *testing.T) {
	e := newEnv(t)
	ids := []state.Identity{
		{ID: "pod-1", Addrs: []string{"gateway"}}, {ID: "pod-2", Addrs: []string{"gateway", "v6"}}, {ID: "gateway-2", Addrs: []string{"x"}},
	}
	for i, m := range e.endpointSet.Update(nil, ids) {
		e.members[ids[i].ID] = m
		e.set(ids[i].ID, 1)
	}
	for name, want := range map[string][]string{
		"pod-1": {"pod-2", "gateway-2"}, "v6": {"pod-1", "gateway-2"}, "gateway": {"gateway-2"}, "gateway-2": {"pod-1", "pod-2"},
	} {
		d := e.ledger.Drain(name)
		require.ElementsMatch(t, want, e.calls(len(want)), name)
		require.NoError(t, e.ledger.Check())
		d.End()
	}
	require.ElementsMatch(t, []string{"pod-1", "pod-2", "gateway-2"}, e.calls(3))
}

// Sessions leave within DrainWithin, for that reason; when all is drained they stay.
func TestSessionsLeaveWhatIsDrained(t *testing.T) {
	inTime(t, func(e *env) {
		e.add("a", "b")
		s := e.streams()
		defer s.end()
		e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 10, DrainWithin: 10 * time.Second})
		s.begin(200)
		d := e.ledger.Drain("a")
		pass(5 * time.Second)
		require.InDelta(t, 150, s.at("b"), 30) // six standard deviations
		pass(6 * time.Second)
		s.want(100, on{"b": 200})
		require.EqualValues(t, 100, e.endpointSet.Counters().MovesDone.Draining)
		e.ledger.Drain("b")
		pass(time.Minute)
		s.want(100, on{"b": 200})
		d.End()
		pass(11 * time.Second)
		s.want(300, on{"a": 200})
	})
}

// Whose members change is told, with no lock held.
func TestDrainsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, other := newEnv(t), newEnv(t)
		e.add("a", "b")
		other.add("b")
		var told atomic.Int32
		e.endpointSet.OnDrains(func() { told.Add(1); e.endpointSet.Drained() })
		other.endpointSet.OnDrains(func() { t.Error("another ledger was told") })
		var b *state.Drain
		for i, do := range []func(){
			func() { e.ledger.Drain("a"); e.ledger.Drain("a") }, func() { b = e.ledger.Drain("b") }, func() { b.End() },
		} {
			do()
			synctest.Wait()
			require.EqualValues(t, []int{1, 2, 3}[i], told.Load())
			require.Len(t, e.endpointSet.Drained(), []int{1, 2, 1}[i])
		}
	})
}

// A drain that has ended, by its list, pins no ledger.
func TestDrainPinsNoLedger(t *testing.T) {
	l := state.Open("")
	r := l.NewEndpointSet("test")
	r.Update(nil, []state.Identity{{Addrs: []string{"a"}}})
	d, p := l.Drain("a"), weak.Make(l)
	r.Close()
	l, r = nil, nil
	require.Eventually(t, func() bool { runtime.GC(); return p.Value() == nil }, time.Minute, time.Millisecond)
	d.End()
}

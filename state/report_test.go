package state_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// report returns what snapshots say of an endpoint's only member.
func (e *env) report(addr string) state.ReportSnapshot {
	for _, n := range e.ledger.Snapshot().Endpoints {
		if n.Addresses[0] == addr {
			return n.Members[0].Report
		}
	}
	return state.ReportSnapshot{}
}

// reported adds servers that choices by reports are among, each with RPCs of others.
func (e *env) reported(interval time.Duration, others int64, addrs ...string) {
	e.endpointSet.SetReports(interval)
	e.add(addrs...)
	for _, a := range addrs {
		e.members[a].Report(others, 0)
	}
}

// A server that does not report gets its share all the same.
func TestSilentServersAreChosen(t *testing.T) {
	inTime(t, func(e *env) {
		all := names(20)
		e.reported(time.Second, 10, all...)
		for range 4 { // six fall silent
			pass(time.Second)
			for _, a := range all[6:] {
				e.members[a].Report(10, 0)
			}
		}
		for i, a := range all {
			require.Equal(t, i < 6, e.report(a).Silent)
			require.Equal(t, i >= 6, e.report(a).Told)
		}
		got := map[string]int{}
		const rounds = 800
		for range rounds {
			for _, a := range all[6:] {
				pass(time.Second / 14)
				e.members[a].Report(5+rand.Int64N(11), 0.01)
				lease, value, ok := e.readySet.Acquire()
				require.True(t, ok && lease.Release())
				got[value.(string)]++
			}
		}
		require.NoError(t, e.ledger.Check())
		for _, a := range all[:6] {
			require.Greater(t, got[a], rounds*14/20/2, a)
			require.Less(t, got[a], rounds*14/20*2, a)
		}
		e.members[all[0]].Report(10, 0)
		require.Equal(t, state.ReportSnapshot{Told: true, Others: 10}, e.report(all[0]))
	})
}

// Once reports come again, the old ones do not count.
func TestReportsAfterALongSilence(t *testing.T) {
	inTime(t, func(e *env) {
		all := names(100)
		e.reported(time.Second, 50, all...)
		pass(time.Minute)
		e.members[all[0]].Report(0, 0)
		require.LessOrEqual(t, e.openMany(50)[all[0]], 1)
		require.NoError(t, e.ledger.Check())
	})
}

// A server that has less in flight than what this process has had there for long lies.
func TestReportsThatCannotBeTrueAreNotUsed(t *testing.T) {
	inTime(t, func(e *env) {
		e.reported(time.Second, 10, "a", "b", "c")
		e.load("a", 3)
		e.set("a", 1)
		e.members["a"].Report(0, 0) // they may have been on their way
		require.True(t, e.report("a").Told)
		e.members["a"].Report(2, 0)
		require.Equal(t, state.ReportSnapshot{Silent: true}, e.report("a"))
		e.members["a"].Report(3, 0)
		require.Equal(t, state.ReportSnapshot{Told: true}, e.report("a"))
		e.members["a"].Report(-1, 0)
		require.Equal(t, state.ReportSnapshot{Told: true}, e.report("a"))
	})
}

// Who has no room is not chosen, however little its server has to do.
func TestReportsDoNotChooseFullServers(t *testing.T) {
	inTime(t, func(e *env) {
		e.reported(10*time.Second, 50, names(10)...)
		e.list("capped", "limited", "drained")
		for _, a := range []string{"capped", "limited", "drained"} {
			e.set(a, 1)
			e.members[a].Report(0, 0)
		}
		e.members["capped"].SetMaxInFlight(2)
		e.members["limited"].NewConnection().SetLimit(1)
		e.set("drained", 0)
		got := e.openMany(20)
		require.Equal(t, map[string]int{"capped": 2, "limited": 1}, map[string]int{"capped": got["capped"], "limited": got["limited"]})
		require.Zero(t, got["drained"])
		require.NoError(t, e.ledger.Check())
	})
}

// A report reaches all channels of a key.
func TestReportsAreOfTheLedger(t *testing.T) {
	inTime(t, func(e *env) {
		e.reported(10*time.Second, 50, names(3)...)
		other := newEnvOn(t, e.ledger)
		other.reported(time.Second, 7, names(3)...)
		for _, n := range e.ledger.Snapshot().Endpoints {
			for _, m := range n.Members {
				require.Equal(t, state.ReportSnapshot{Told: true, Others: 7}, m.Report)
			}
		}
		other.endpointSet.SetReports(0)
		e.endpointSet.SetReports(time.Minute)
		e.members["n0000"].Report(5, 0)
		for _, n := range e.ledger.Snapshot().Endpoints[:1] {
			for _, m := range n.Members {
				require.Equal(t, m.EndpointSet == e.name, m.Report.Told)
			}
		}
		require.NoError(t, e.ledger.Check())
	})
}

// Servers that only this client uses are as level as without their reports.
func TestOneClientWithReportsIsLevel(t *testing.T) {
	const n, streams = 20, 200
	gaps := map[bool]float64{}
	for _, on := range []bool{false, true} {
		inTime(t, func(e *env) {
			all := names(n)
			if on {
				e.reported(time.Second, 0, all...)
			} else {
				e.add(all...)
			}
			tell := func() {
				for range 3 {
					a := all[rand.IntN(n)]
					e.members[a].Report(int64(len(e.leases[a])), rand.Float64())
				}
				pass(state.Tick)
			}
			gap := func() int {
				low, high := streams, 0
				for _, a := range all {
					low, high = min(low, len(e.leases[a])), max(high, len(e.leases[a]))
				}
				return high - low
			}
			for range streams {
				e.open()
				tell()
				require.LessOrEqual(t, gap(), 1)
			}
			const ends = 2000
			for range ends {
				if a := all[rand.IntN(n)]; len(e.leases[a]) > 0 {
					e.end(a, 1)
					tell()
					e.open()
				}
				gaps[on] += float64(gap()) / ends
			}
		})
	}
	require.LessOrEqual(t, gaps[true], 1.1*gaps[false], gaps)
}

// Reports, choices, ends, flaps and configurations may come at one time.
func TestReportsAreSafeForConcurrentUse(t *testing.T) {
	e := newEnv(t)
	all := names(50)
	e.reported(time.Millisecond, 20, all...)
	var wg sync.WaitGroup
	for _, do := range []func(){
		func() { e.members[all[rand.IntN(50)]].Report(rand.Int64N(40), rand.Float64()) },
		func() {
			if lease, _, ok := e.readySet.Acquire(); ok {
				lease.Release()
			}
		},
		func() {
			a := all[rand.IntN(50)]
			e.readySet.Remove(e.members[a])
			e.readySet.Set(e.members[a], uint32(rand.IntN(4)), a)
		},
		func() { e.endpointSet.SetReports(time.Duration(rand.IntN(3)) * time.Millisecond) },
		func() { require.NoError(t, e.ledger.Check()) },
	} {
		wg.Go(func() {
			for range 500 {
				do()
			}
		})
	}
	wg.Wait()
}

package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// fleet returns what snapshots and totals agree on.
func (e *env) fleet() state.FleetSnapshot {
	e.Helper()
	f := e.ledger.Snapshot().Fleet
	require.Equal(e, f, e.ledger.SnapshotInSteps().Fleet)
	require.Equal(e, f, e.ledger.Totals(e.ledger.Totals(nil)).Fleet)
	return f
}

// What servers say of a ledger is summed up where reports are used, and only there.
func TestSumOfReports(t *testing.T) {
	inTime(t, func(e *env) {
		e.add("a", "b", "c", "d")
		e.set("b", 3)
		for _, a := range []string{"a", "b", "c"} {
			e.members[a].Report(100, 1)
		}
		require.Equal(t, state.FleetSnapshot{}, e.fleet())
		e.endpointSet.SetReports(10 * time.Second)
		require.Equal(t, state.FleetSnapshot{IntervalSeconds: 10}, e.fleet())
		e.load("a", 2)
		e.set("a", 1)
		e.members["a"].Report(12, 1) // 12 over 1/2
		e.members["b"].Report(9, 1)  // 9 over 3/2
		require.Equal(t, state.FleetSnapshot{IntervalSeconds: 10, Told: 2, Others: 19, Imbalance: 18}, e.fleet())
		require.Equal(t, 2*6.0/4, e.ledger.Snapshot().Imbalance, "of the process alone, of all four")

		pass(29 * time.Second)
		e.members["c"].Report(3, 1)
		pass(time.Second)
		require.Equal(t, state.FleetSnapshot{IntervalSeconds: 10, Told: 1, Silent: 3, Others: 3}, e.fleet())
		e.endpointSet.SetReports(time.Second)
		other := newEnvOn(t, e.ledger)
		other.endpointSet.SetReports(5 * time.Second)
		require.EqualValues(t, 1, e.fleet().IntervalSeconds)
		e.endpointSet.SetReports(0)
		require.Equal(t, state.FleetSnapshot{IntervalSeconds: 5}, e.fleet())
	})
}

// The spread of the fleet is that of the level which is used.
func TestSpreadWithOthersIsOfTheFirstLevel(t *testing.T) {
	inTime(t, func(e *env) {
		e.reported(time.Second, 5, "a", "b")
		e.members["a"].Report(7, 1)
		require.EqualValues(t, 2, e.fleet().Imbalance)
		e.list("c", "d")
		second := e.endpointSet.NewReadySet(1)
		for i, a := range []string{"c", "d"} {
			second.Set(e.members[a], 1, a)
			e.members[a].Report(int64(100*i), 1)
		}
		require.EqualValues(t, 2, e.fleet().Imbalance)
		e.endpointSet.SetReports(0)
		e.endpointSet.SetReports(time.Second)
		e.members["c"].Report(0, 1)
		e.members["d"].Report(100, 1)
		require.Zero(t, e.fleet().Imbalance, "none of the first level has told")
		e.set("a", 0)
		e.set("b", 0)
		require.EqualValues(t, 100, e.fleet().Imbalance)
	})
}

// A report's age is known of silent servers, too.
func TestAgeOfReports(t *testing.T) {
	inTime(t, func(e *env) {
		e.reported(time.Second, 5, "a")
		e.add("b")
		pass(2 * time.Second)
		require.Equal(t, state.ReportSnapshot{Told: true, Others: 5, AgeSeconds: 2}, e.report("a"))
		pass(time.Minute)
		require.Equal(t, state.ReportSnapshot{Silent: true, AgeSeconds: 62}, e.report("a"))
		require.Equal(t, state.ReportSnapshot{Silent: true}, e.report("b"))
		for range 10 { // it is lent figures, which are no report
			e.add("c")
			e.members["c"].Report(1, 1)
			e.remove("c")
		}
		require.Equal(t, state.ReportSnapshot{Silent: true, AgeSeconds: 62}, e.report("a"))
	})
}

// Where endpoint sets have heard different things, what counts for one of them is shown;
// endpoints with one first address are shown as one.
func TestReportsOfOneAddress(t *testing.T) {
	inTime(t, func(e *env) {
		e.reported(time.Second, 5, "a")
		other := newEnvOn(t, e.ledger)
		other.endpointSet.SetReports(time.Minute)
		other.add("a")
		other.members["a"].Report(6, 1)
		pass(10 * time.Second)
		require.Equal(t, state.FleetSnapshot{IntervalSeconds: 1, Told: 1, Others: 6}, e.fleet())

		same := other.endpointSet.Update(nil, []state.Identity{{ID: "another", Addrs: []string{"a"}}})[0]
		other.readySet.Set(same, 1, "another")
		same.Report(4, 1)
		pass(time.Second)
		totals := e.ledger.Totals(nil)
		require.Len(t, totals.ByAddress, 1)
		got := totals.ByAddress[0].Report
		require.Equal(t, []any{true, int64(10), 11.0}, []any{got.Told, got.Others, got.AgeSeconds})

		for _, id := range []string{"third", "fourth"} {
			m := other.endpointSet.Update(nil, []state.Identity{{ID: id, Addrs: []string{"a"}}})[0]
			other.readySet.Set(m, 1, id)
		}
		pass(time.Hour)
		same.Report(4, 1)
		got = e.ledger.Totals(totals).ByAddress[0].Report
		require.Equal(t, []any{true, false, int64(4)}, []any{got.Told, got.Silent, got.Others}, "what is silent beside it does not count")
	})
}

// Keys of one target have RPCs on the same server: those of each are others to the other one, and together
// they have as many others as the server has RPCs of nobody here.
func TestOthersOfSeveralKeysAreToldOnce(t *testing.T) {
	inTime(t, func(*env) {
		one, two := openNew("K"), openNew("L")
		e, f := labelled(t, one, "", "", "a", 3, "b", 1), labelled(t, two, "", "", "a", 4, "c", 2)
		server := map[string]int64{"a": 17, "b": 6, "c": 2}
		report := func(e *env) {
			e.endpointSet.SetReports(time.Second)
			for a, m := range e.members {
				m.Report(server[a], 1)
			}
		}
		others := func() map[string]int64 {
			all := state.SeriesOf("t", []*state.LedgerTotals{one.Totals(one.Totals(nil)), two.Totals(two.Totals(nil))})
			sum := all[len(all)-1]
			by := map[string]int64{}
			for _, n := range sum.ByAddress {
				by[n.Address] = n.Report.Others
			}
			by[sum.Key] = sum.Fleet.Others
			return by
		}
		report(e)
		require.Equal(t, map[string]int64{"a": 10, "b": 5, "c": 0, "": 15}, others(), "one key has reports")
		report(f)
		require.Equal(t, map[string]int64{"a": 10, "b": 5, "c": 0, "": 15}, others())
		pass(time.Second)
		server["a"] = 20
		f.members["a"].Report(server["a"], 1)
		require.EqualValues(t, 13, others()["a"], "the youngest counts")
	})
}

package state_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// labelled adds an endpoint set of the target "t" to a ledger.
func labelled(t *testing.T, l *state.Ledger, locality, cluster string, loads ...any) *env {
	e := newEnvNamed(t, l, "t")
	e.endpointSet.SetLabels(locality, cluster)
	for i := 0; i < len(loads); i += 2 {
		e.list(loads[i].(string))
		e.load(loads[i].(string), loads[i+1].(int))
		e.set(loads[i].(string), 1)
	}
	return e
}

// openNew opens the ledger of a key that no other test has, nor has had a run before, whose
// time was another: the name with a number.
func openNew(name string) *state.Ledger { return state.Open(fmt.Sprint(name, rand.Uint64())) }

// series renders a target's series: keys without their numbers, labels, RPCs in flight, their
// sum over addresses, imbalance, and endpoints by state.
func series(target string, ledgers ...*state.Ledger) (got []string) {
	var of []*state.LedgerTotals
	for _, l := range ledgers {
		of = append(of, l.Totals(l.Totals(nil)))
	}
	for _, s := range state.SeriesOf(target, of) {
		sum := int64(0)
		var addrs []string
		for _, a := range s.ByAddress {
			sum += a.InFlight
			addrs = append(addrs, a.Address)
		}
		if sum != s.InFlight {
			got = append(got, fmt.Sprintf("by address %d", sum))
		}
		text := fmt.Sprintf("%s/%s/%s %d on %s", strings.TrimRight(s.Key, "0123456789"), s.Locality, s.Cluster, s.InFlight, strings.Join(addrs, ""))
		for _, is := range state.EndpointStates {
			if n := s.Endpoints[is]; n > 0 {
				text += fmt.Sprintf(" %s %d", is, n)
			}
		}
		if s.Imbalance > 0 {
			text += fmt.Sprintf(" imbalance %v", s.Imbalance)
		}
		if s.Waiting > 0 {
			text += fmt.Sprintf(" waiting %d", s.Waiting)
		}
		got = append(got, text)
	}
	return got
}

// For each choice of labels the last series is that of their endpoints, each once.
func TestSeries(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(t *testing.T, l, other *state.Ledger)
		want []string
	}{
		"nothing": {func(*testing.T, *state.Ledger, *state.Ledger) {}, nil},
		"one": {func(t *testing.T, l, _ *state.Ledger) { labelled(t, l, "east", "blue", "a", 1, "b", 3) },
			[]string{"K/east/blue 4 on ab ready 2 imbalance 2"}},
		"channels": {func(t *testing.T, l, _ *state.Ledger) {
			labelled(t, l, "", "", "a", 1, "b", 2)
			labelled(t, l, "", "", "b", 2, "c", 3)
		}, []string{"K// 8 on abc ready 3 imbalance 3"}},
		"localities": {func(t *testing.T, l, _ *state.Ledger) {
			labelled(t, l, "east", "blue", "a", 9, "b", 9)
			labelled(t, l, "west", "blue", "c", 1)
		}, []string{"K/east/blue 18 on ab ready 2", "K/west/blue 1 on c ready 1", "K//blue 19 on abc ready 3"}},
		"clusters that share an endpoint": {func(t *testing.T, l, _ *state.Ledger) {
			labelled(t, l, "", "blue", "a", 1, "b", 1)
			labelled(t, l, "", "green", "b", 1, "c", 5)
		}, []string{"K//blue 3 on ab ready 2 imbalance 1", "K//green 7 on bc ready 2 imbalance 3", "K// 8 on abc ready 3 imbalance 3"}},
		"localities and clusters": {func(t *testing.T, l, _ *state.Ledger) {
			labelled(t, l, "east", "blue", "a", 1)
			labelled(t, l, "west", "blue", "b", 2)
			labelled(t, l, "east", "green", "c", 4)
		}, []string{
			"K/east/blue 1 on a ready 1", "K/east/green 4 on c ready 1", "K/west/blue 2 on b ready 1",
			"K/east/ 5 on ac ready 2", "K/west/ 2 on b ready 1",
			"K//blue 3 on ab ready 2", "K//green 4 on c ready 1", "K// 7 on abc ready 3",
		}},
		"keys": {func(t *testing.T, l, other *state.Ledger) {
			labelled(t, l, "", "", "a", 1, "b", 2)
			labelled(t, other, "", "", "a", 4, "c", 4)
		}, []string{"K// 3 on ab ready 2 imbalance 1", "L// 8 on ac ready 2", "// 11 on abc ready 4 imbalance 1"}},
		"another target": {func(t *testing.T, l, _ *state.Ledger) {
			newEnvOn(t, l).add("a", "b")
			labelled(t, l, "", "", "a", 1)
		}, []string{"K// 1 on a ready 1"}},
		"states": {func(t *testing.T, l, _ *state.Ledger) {
			e := labelled(t, l, "east", "", "a", 0, "b", 0)
			e.set("a", 0)
			e.list("c")
			f := labelled(t, l, "west", "", "c", 0, "a", 0)
			f.list("b")
			f.set("c", 0)
		}, []string{
			"K/east/ 0 on abc ready 1 draining 1 not_ready 1", "K/west/ 0 on abc ready 1 draining 1 not_ready 1",
			"K// 0 on abc ready 2 draining 1",
		}},
		"waiting": {func(t *testing.T, l, _ *state.Ledger) {
			e := labelled(t, l, "east", "", "a", 1)
			e.guard(state.Guards{})
			e.endpointSet.SetQueueSets(e.readySet)
			e.members["a"].SetMaxInFlight(1)
			e.queued(1)
			labelled(t, l, "west", "", "b", 0)
		}, []string{"K/east/ 1 on a ready 1 waiting 1", "K/west/ 0 on b ready 1", "K// 1 on ab ready 2 waiting 1"}},
		"departed": {func(t *testing.T, l, _ *state.Ledger) {
			e := labelled(t, l, "", "blue", "a", 2, "b", 1, "c", 0)
			e.remove("a")
			e.remove("c")
			labelled(t, l, "", "green", "d", 1)
		}, []string{"K//blue 3 on ab ready 1 departed 1", "K//green 1 on d ready 1", "K// 4 on abd ready 2 departed 1"}},
		"departed with its cluster": {func(t *testing.T, l, _ *state.Ledger) {
			e := labelled(t, l, "", "blue", "a", 2)
			labelled(t, l, "", "green", "b", 1)
			e.endpointSet.Close()
		}, []string{"K//blue 2 on a departed 1", "K//green 1 on b ready 1", "K// 3 on ab ready 1 departed 1"}},
		"moved to another cluster": {func(t *testing.T, l, _ *state.Ledger) {
			e := labelled(t, l, "", "blue", "a", 2, "c", 0)
			labelled(t, l, "", "green", "a", 1)
			e.remove("a")
		}, []string{"K//blue 0 on c ready 1", "K//green 3 on a ready 1", "K// 3 on ac ready 2"}},
		"departed here, listed by another target": {func(t *testing.T, l, _ *state.Ledger) {
			e := labelled(t, l, "", "", "a", 2, "b", 0)
			newEnvOn(t, l).add("a")
			e.remove("a")
		}, []string{"K// 2 on ab ready 1 departed 1"}},
		"labels that change": {func(t *testing.T, l, _ *state.Ledger) {
			e := labelled(t, l, "east", "", "a", 2)
			l.Totals(nil)
			e.endpointSet.SetLabels("west", "")
		}, []string{"K/west/ 2 on a ready 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			l, other := openNew("K"), openNew("L")
			tc.do(t, l, other)
			ledgers := []*state.Ledger{l}
			if len(other.Snapshot().Endpoints) > 0 {
				ledgers = append(ledgers, other)
			}
			require.Equal(t, tc.want, series("t", ledgers...))
			require.NoError(t, l.Check())
			require.Empty(t, series("u", ledgers...))
		})
	}
}

// An endpoint that has left a target is its for as long as what was in flight then. What other
// targets put there later does not keep it.
func TestDepartedEndpointEndsWithItsLeases(t *testing.T) {
	inTime(t, func(e *env) {
		f := labelled(e.T, e.ledger, "", "", "a", 2, "b", 0)
		e.add("a")
		pass(time.Second)
		f.remove("a")
		pass(time.Second)
		e.openMany(3)
		require.Equal(t, []string{"// 5 on ab ready 1 departed 1"}, series("t", e.ledger))
		f.end("a", 1)
		require.Equal(t, []string{"// 4 on ab ready 1 departed 1"}, series("t", e.ledger))
		f.end("a", 1)
		require.Equal(t, []string{"// 0 on b ready 1"}, series("t", e.ledger))
		f.list("a")
		require.Equal(t, []string{"// 3 on ab ready 1 not_ready 1"}, series("t", e.ledger))
		require.True(t, e.ledger.Serves("t"))
		f.endpointSet.Close()
		require.False(t, e.ledger.Serves("t"))
		require.Equal(t, []string{"// 3 on a departed 1"}, series("t", e.ledger))
		f.close()
		e.end("a", 3)
		require.Empty(t, series("t", e.ledger))
	})
}

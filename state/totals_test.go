package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// Totals are what a snapshot adds up to, as endpoints come, change and go.
func TestTotals(t *testing.T) {
	e := newEnv(t)
	f := newEnvOn(t, e.ledger)
	var last *state.LedgerTotals
	for _, step := range []struct {
		name string
		do   func()
		want state.Totals
	}{
		{"nothing", func() {}, state.Totals{}},
		{"listed", func() { e.list("a", "b", "c") }, totals(0, 0, "not_ready", 3, "a", 0, "b", 0, "c", 0)},
		{"ready", func() { e.set("a", 1); e.set("b", 2) }, totals(0, 0, "not_ready", 1, "ready", 2, "a", 0, "b", 0, "c", 0)},
		{"in flight", func() { e.set("b", 0); e.openMany(3) }, totals(3, 0, "not_ready", 1, "ready", 1, "draining", 1, "a", 3, "b", 0, "c", 0)},
		{"weights", func() { e.set("b", 3) }, totals(3, 6, "not_ready", 1, "ready", 2, "a", 3, "b", 0, "c", 0)},
		{"in another set", func() { f.add("c") }, totals(3, 5, "ready", 3, "a", 3, "b", 0, "c", 0)},
		{"gone there", func() { f.remove("c") }, totals(3, 6, "not_ready", 1, "ready", 2, "a", 3, "b", 0, "c", 0)},
		{"departed", func() { e.remove("a") }, totals(3, 0, "departed", 1, "ready", 1, "not_ready", 1, "a", 3, "b", 0, "c", 0)},
		{"over", func() { e.end("a", 3) }, totals(0, 0, "ready", 1, "not_ready", 1, "b", 0, "c", 0)},
		{"closed", func() { e.endpointSet.Close() }, state.Totals{}},
	} {
		step.do()
		last = e.ledger.Totals(last)
		got := last.Totals
		got.OldestSeconds = 0
		for i := range got.ByAddress {
			got.ByAddress[i].EffectiveWeight = 0
		}
		if step.want.Endpoints == nil {
			step.want.Endpoints = map[state.EndpointState]int64{}
		}
		require.Equal(t, step.want, got, step.name)
		require.NoError(t, e.ledger.Check())
	}
}

// limits returns the caps and the effective weights in a target's last series, by address.
func limits(target string, ledgers ...*state.Ledger) (got []any) {
	var of []*state.LedgerTotals
	for _, l := range ledgers {
		of = append(of, l.Totals(l.Totals(nil)))
	}
	all := state.SeriesOf(target, of)
	for _, a := range all[len(all)-1].ByAddress {
		got = append(got, a.Address, a.MaxInFlight, a.EffectiveWeight)
	}
	return got
}

// Totals have each address's lowest cap and its weight as it is in effect.
func TestCapsAndWeightsInTotals(t *testing.T) {
	inTime(t, func(e *env) {
		x := labelled(e.T, e.ledger, "east", "", "a", 0, "b", 0, "c", 0)
		pass(time.Minute) // all are warm
		x.guard(linear)
		x.members["a"].SetMaxInFlight(7)
		x.set("b", 0)
		none := int64(0)
		require.Equal(t, []any{"a", int64(7), 1.0, "b", none, 0.0, "c", none, 1.0}, limits("t", e.ledger))
		x.list("d")
		x.set("d", 8)
		require.Equal(t, []any{"d", none, 0.8}, limits("t", e.ledger)[9:])
		pass(5 * time.Second)
		require.Equal(t, 8*x.share("d"), limits("t", e.ledger)[11])

		y := labelled(e.T, e.ledger, "west", "", "a", 0, "c", 0)
		y.members["a"].SetMaxInFlight(9)
		y.members["c"].SetMaxInFlight(3)
		require.Equal(t, []any{"a", int64(7), 1.0, "b", none, 0.0, "c", int64(3), 1.0}, limits("t", e.ledger)[:9])
		x.remove("a")
		require.Equal(t, []any{"a", int64(9), 1.0}, limits("t", e.ledger)[:3])

		// Endpoints with one first address are one; what has no cap leaves the sum without.
		for i, id := range []string{"second", "third"} {
			m := y.endpointSet.Update(nil, []state.Identity{{ID: id, Addrs: []string{"a"}}})[0]
			y.readySet.Set(m, 2, id)
			m.SetMaxInFlight([]uint32{5, 0}[i])
			require.Equal(t, []any{"a", []int64{14, 0}[i], 3.0 + 2*float64(i)}, limits("t", e.ledger)[:3])
		}
	})
}

// totals has in flight, imbalance, then states and addresses with numbers.
func totals(inFlight int64, imbalance float64, more ...any) state.Totals {
	t := state.Totals{InFlight: inFlight, Imbalance: imbalance, Endpoints: map[state.EndpointState]int64{}}
	for i := 0; i < len(more); i += 2 {
		name, n := more[i].(string), int64(more[i+1].(int))
		if len(name) > 1 {
			t.Endpoints[state.EndpointState(name)] = n
		} else {
			t.ByAddress = append(t.ByAddress, state.AddressLoad{Address: name, InFlight: n})
		}
	}
	return t
}

// Channels that are asked at one moment share the totals. Each is given new ones the
// next time, and nobody old ones.
func TestTotalsAreShared(t *testing.T) {
	inTime(t, func(e *env) {
		e.add(names(1000)...)
		x := e.ledger.Totals(nil)
		require.Same(t, x, e.ledger.Totals(nil))
		time.Sleep(10 * time.Millisecond)
		require.Same(t, x, e.ledger.Totals(nil), "a collection takes its time")
		e.open()
		second := e.ledger.Totals(x)
		require.EqualValues(t, 1, second.InFlight)
		require.Same(t, second, e.ledger.Totals(x))
		e.open()
		pass(time.Second)
		third := e.ledger.Totals(x)
		require.EqualValues(t, 2, third.InFlight)
		require.Equal(t, 1.0, third.OldestSeconds)

		small := newEnv(e.T)
		small.add("a")
		small.ledger.Totals(nil)
		small.open()
		time.Sleep(time.Millisecond)
		require.EqualValues(t, 1, small.ledger.Totals(nil).InFlight)
	})
}

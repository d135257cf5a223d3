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
		if step.want.Endpoints == nil {
			step.want.Endpoints = map[state.EndpointState]int64{}
		}
		require.Equal(t, step.want, got, step.name)
		require.NoError(t, e.ledger.Check())
	}
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

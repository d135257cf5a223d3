package state_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// costing is an RPC that costs some units.
func (e *env) costing(units int64) *rpc {
	r := e.rpc()
	r.ctx = state.WithCost(r.ctx, units)
	return r
}

// attempt is another attempt of the RPC, or another RPC that has its context.
func (r *rpc) attempt(ctx context.Context, tried *state.Tried) (state.Lease, string) {
	r.Helper()
	lease, value, outcome := r.endpointSet.AcquireOrQueue(ctx, tried, r.readySet)
	require.Equal(r, state.Chosen, outcome)
	require.NoError(r, r.ledger.Check())
	return lease, value.(string)
}

func (r *rpc) setCost(units int64) {
	r.Helper()
	state.CostOf(r.ctx).Set(units)
	require.NoError(r, r.ledger.Check())
}

// units returns the units in flight by first address.
func (e *env) units() map[string]int {
	e.Helper()
	require.NoError(e, e.ledger.Check())
	got := map[string]int{}
	for _, n := range e.ledger.Snapshot().Endpoints {
		got[n.Addresses[0]] = int(n.Units)
	}
	return got
}

// A pick leaves its endpoint less than the RPC's own units above its weighted share, so
// RPCs that only come leave loads level within the largest.
func TestUnitsAreLevelWithinTheLargest(t *testing.T) {
	t.Parallel()
	for name, weights := range map[string][]uint32{"equal": {1, 1, 1, 1}, "unequal": {1, 2, 5, 40}} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				sum := 0.0
				for i, addr := range []string{"a", "b", "c", "d"} {
					e.list(addr)
					e.set(addr, weights[i])
					sum += float64(weights[i])
				}
				all := 0
				for range 150 {
					units := []int{1, 1, 1, 1 + rand.IntN(100), 1 + rand.IntN(state.MaxCost)}[rand.IntN(5)]
					r := e.costing(int64(units))
					require.Equal(t, state.Chosen, r.acquire())
					all += units
					on := e.units()
					for i, addr := range []string{"a", "b", "c", "d"} {
						share := float64(all) * float64(weights[i]) / sum
						if addr == r.on {
							require.Less(t, float64(on[addr]), share+float64(units)+1e-6, "after %d units: %v", units, on)
						}
						if name == "equal" {
							require.LessOrEqual(t, on[r.on]-on[addr], units)
						}
					}
				}
			})
		})
	}
}

// Of the RPCs that have a context, the first has its cost, with all its attempts.
func TestCostIsOfOneRPC(t *testing.T) {
	for name, tc := range map[string]struct {
		other func(r *rpc) (context.Context, *state.Tried) // of another pick
		ended bool                                         // the first attempt is over by then
		want  int
	}{
		"retry":              {func(r *rpc) (context.Context, *state.Tried) { return r.ctx, nil }, true, 500},
		"a second RPC":       {func(r *rpc) (context.Context, *state.Tried) { return r.another(), nil }, true, 1},
		"a second, at once":  {func(r *rpc) (context.Context, *state.Tried) { return r.another(), nil }, false, 1},
		"one without a cost": {func(r *rpc) (context.Context, *state.Tried) { return r.rpc().ctx, nil }, true, 1},
		"a program's retry":  {func(r *rpc) (context.Context, *state.Tried) { return r.another(), r.tried }, true, 500},
		"its token's fetch":  {func(r *rpc) (context.Context, *state.Tried) { return r.another(), r.tried }, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				e.add("a")
				r := e.costing(500)
				r.tried = &state.Tried{}
				r.tried.StandForRPC()
				first, _ := r.attempt(r.ctx, r.tried)
				require.Equal(t, map[string]int{"a": 500}, e.units())
				if tc.ended {
					require.True(t, first.Release())
					require.False(t, first.Release())
					require.Equal(t, map[string]int{"a": 0}, e.units())
				}
				second, _ := r.attempt(tc.other(r))
				if !tc.ended {
					require.Equal(t, map[string]int{"a": 500 + tc.want}, e.units())
					require.True(t, first.Release())
				}
				require.Equal(t, map[string]int{"a": tc.want}, e.units())
				require.True(t, second.Release())
				require.Equal(t, map[string]int{"a": 0}, e.units())
			})
		})
	}
}

// another is the context of another RPC, made of the same one.
func (r *rpc) another() context.Context {
	ctx, cancel := context.WithCancel(r.ctx)
	r.Cleanup(cancel)
	return ctx
}

// A change takes effect at once, the next one 0.1 s later: the last that was set.
func TestCostChangesTenTimesASecond(t *testing.T) {
	inTime(t, func(e *env) {
		e.add("a")
		r := e.costing(500)
		r.setCost(600)
		require.Equal(t, state.Chosen, r.acquire())
		require.Equal(t, map[string]int{"a": 600}, e.units(), "what it was before its pick")
		r.setCost(700)
		require.Equal(t, map[string]int{"a": 700}, e.units())
		changes, last := 0, 700
		for i := range 1000 {
			r.setCost(int64(1000 + i))
			if n := e.units()["a"]; n != last {
				changes, last = changes+1, n
			}
			pass(time.Millisecond)
		}
		require.InDelta(t, 9, changes, 1, "the first change was before them")
		pass(110 * time.Millisecond)
		require.Equal(t, map[string]int{"a": 1999}, e.units())
		pass(time.Second)
		r.setCost(5)
		require.Equal(t, map[string]int{"a": 5}, e.units())
		r.setCost(6)
		r.finish()
		require.Equal(t, map[string]int{"a": 0}, e.units())
		r.setCost(7)
		pass(time.Second)
		require.Equal(t, map[string]int{"a": 0}, e.units(), "it has ended")
	})
}

// An RPC that waits for room, or for a member that connects, has its cost where it waits.
func TestCostOfAnRPCThatWaits(t *testing.T) {
	inTime(t, func(e *env) {
		e.guard(state.Guards{})
		e.capped(1, "a")
		first, second := e.costing(500), e.costing(10)
		require.Equal(t, state.Chosen, first.acquire())
		require.Equal(t, state.Queued, second.acquire())
		second.setCost(20)
		require.Equal(t, map[string]int{"a": 500}, e.units())
		first.finish()
		require.Equal(t, map[string]int{"a": 20}, e.units(), "it was granted the room")
		second.setCost(30)
		require.Equal(t, map[string]int{"a": 30}, e.units())
		require.Equal(t, state.Chosen, second.acquire())
		require.Equal(t, map[string]int{"a": 30}, e.units())

		e.list("b")
		e.readySet.SetConnecting(e.members["b"], 1, time.Now().Add(time.Minute))
		e.members["a"].SetMaxInFlight(0)
		require.Equal(t, state.Chosen, e.rpc().acquire(), "nothing is in flight since b connects")
		third, fourth := e.costing(40), e.costing(7)
		require.Equal(t, state.Reserved, third.acquire())
		require.Equal(t, map[string]int{"a": 31, "b": 40}, e.units())
		third.setCost(50)
		require.Equal(t, map[string]int{"a": 31, "b": 50}, e.units())
		require.Equal(t, state.Chosen, fourth.acquire(), "a has less")
		require.Equal(t, map[string]int{"a": 38, "b": 50}, e.units())
		e.set("b", 1)
		require.Equal(t, state.Chosen, third.acquire())
		require.Equal(t, "b", third.on)
		require.Equal(t, map[string]int{"a": 38, "b": 50}, e.units())
	})
}

// A failed RPC leaves its units as a penalty, and takes the room of one RPC.
func TestPenaltyIsOfTheUnits(t *testing.T) {
	inTime(t, func(e *env) {
		e.guard(penalized)
		e.capped(2, "a", "b")
		r := e.costing(5000)
		require.Equal(t, state.Chosen, r.acquire())
		other := map[string]string{"a": "b", "b": "a"}[r.on]
		e.fail(r.on, 1)
		require.Equal(t, map[string]int{r.on: 5000}, e.penalties())
		require.EqualValues(t, 1, e.ledger.Snapshot().EndpointSets[0].Penalties)
		require.Equal(t, map[string]int{other: 2}, e.openMany(2))
		require.Equal(t, r.on, e.open(), "it has room for one more")
		require.Equal(t, state.Queued, e.rpc().acquire())
		pass(time.Second)
		require.Empty(t, e.penalties())
		require.Equal(t, map[string]int{r.on: 2, other: 2}, e.loads(), "the one that waits was given the room")
	})
}

// Costs of one unit change nothing: each choice is the one that is made without.
func TestCostOfOneUnitChangesNoChoice(t *testing.T) {
	inTime(t, func(e *env) {
		with := newEnv(e.T)
		envs := []*env{e, with}
		all := names(7)
		for _, e := range envs {
			e.guard(penalized)
			e.list(all...)
			for i, addr := range all { // at places that are no chance
				e.load(addr, i)
				e.set(addr, 1)
			}
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range 5000 {
			switch random.IntN(10) {
			case 0, 1, 2, 3, 4:
				without := e.open()
				r := with.costing(1)
				require.Equal(t, state.Chosen, r.acquire())
				require.Equal(t, without, r.on)
			case 5:
				pass(30 * time.Millisecond)
			default:
				addr, end := all[random.IntN(len(all))], (*env).end
				if len(e.penalties()) == 0 { // which of several ends first is chance
					end = (*env).fail
				}
				for _, e := range envs {
					end(e, addr, min(1, len(e.leases[addr])))
				}
			}
			require.Equal(t, e.loads(), with.loads())
		}
	})
}

// Servers report RPCs: those of others are taken to cost what this process's own do.
func TestReportedRPCsCostWhatOwnOnesDo(t *testing.T) {
	inTime(t, func(e *env) {
		e.reported(10*time.Second, 50, names(10)...)
		e.list("low")
		e.set("low", 1)
		e.members["low"].Report(0, 0)
		got := map[string]int{}
		for range 60 {
			r := e.costing(1000)
			require.Equal(t, state.Chosen, r.acquire())
			got[r.on]++
		}
		require.InDelta(t, 50, got["low"], 2, "50 RPCs of others are worth as many: %v", got)
	})
}

package state

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A plan that pauses is not begun again, though an RPC that is picked meanwhile has the
// clock tick fast.
func TestPlansDoNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 2, Guards{})
		c.inStepsOf(1, nil)
		r, v := c.sets[0], c.ready[0]
		r.SetRebalance(Rebalance{PerSecond: 1})
		ctx, _ := new(Session).Next(context.Background())
		lease, _, outcome := r.AcquireOrQueue(ctx, nil, v)
		require.Equal(t, Chosen, outcome)
		defer c.done()
		defer lease.end(endReleased)
		time.Sleep(time.Second) // the clock ticks for the plan alone

		var paused, most, runs atomic.Int64
		c.inStepsOf(1, func() {
			if n := paused.Add(1); n > most.Load() {
				most.Store(n)
			}
			if runs.Add(1) == 1 {
				other, _, ok := v.Acquire()
				require.True(t, ok)
				time.Sleep(2 * planPeriod)
				require.True(t, other.end(endReleased))
			}
			paused.Add(-1)
		})
		time.Sleep(4 * planPeriod)
		require.EqualValues(t, 1, most.Load(), "at a pause at one time")
		c.inStepsOf(1, nil)
	})
}

// Whatever happens while a plan that goes by reports pauses, it does no harm.
func TestPlansByReportsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const endpoints, sessions = 8, 20
		l := newLedger("")
		set := l.NewEndpointSet("")
		v := set.NewReadySet(0)
		set.SetReports(time.Second)
		set.SetRebalance(Rebalance{PerSecond: 1000})
		ms := set.Update(nil, identities(endpoints))
		var mu sync.Mutex
		r := rand.New(rand.NewPCG(1, 2))
		all, leases := make([]*Session, sessions), make([]Lease, sessions)
		open := func(i int) {
			if leases[i].entry != nil {
				leases[i].end(endReleased)
			}
			ctx, _ := all[i].Next(context.Background())
			leases[i], _, _ = set.AcquireOrQueue(ctx, nil, v)
		}
		change := func() {
			if !mu.TryLock() {
				return // a change has a pause itself
			}
			defer mu.Unlock()
			k := r.IntN(endpoints)
			switch m := ms[k]; r.IntN(12) {
			case 0:
				v.Remove(m)
			case 1, 2:
				v.Set(m, r.Uint32N(4), k)
			case 3:
				ms[k] = set.Update([]*Member{m}, identities(endpoints)[k:k+1])[0]
			case 4:
				m.NewConnection()
			case 5:
				if r.IntN(10) == 0 {
					set.SetReports(0)
					set.SetReports(time.Second)
				}
			case 6, 7:
				open(r.IntN(sessions))
			default:
				m.Report(100+r.Int64N(200), 0.01)
			}
			require.NoError(t, l.Check())
		}
		for k, m := range ms {
			v.Set(m, 1, k)
		}
		for i := range all {
			all[i] = &Session{}
			open(i)
		}
		l.mu.Lock()
		l.stepSize, l.atPause = 1, change
		set.plan.level.settle = 0 // or else all flap
		l.mu.Unlock()
		for n := 0; n < 400 || n < 4000 && set.Counters().MovesAsked.Level == 0; n++ { // chance has a part
			time.Sleep(planPeriod)
			synctest.Wait()
			change()
		}
		require.Positive(t, set.Counters().MovesAsked.Level)
		for _, lease := range leases {
			if lease.entry != nil {
				lease.end(endReleased)
			}
		}
		set.Close()
		l.mu.Lock()
		l.atPause = nil
		l.mu.Unlock()
		require.NoError(t, l.Check())
	})
}

// An endpoint set that closes while its plan pauses asks nobody any more: no plan would
// know of the move.
func TestPlanPausesWhileItsSetCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger("")
		set := l.NewEndpointSet("")
		v := set.NewReadySet(0)
		set.SetRebalance(Rebalance{PerSecond: 1000})
		ms := set.Update(nil, identities(3))
		for k, m := range ms {
			v.Set(m, 1, k)
		}
		var leases []Lease
		for range 3 {
			ctx, _ := new(Session).Next(context.Background())
			lease, _, _ := set.AcquireOrQueue(ctx, nil, v)
			leases = append(leases, lease)
		}
		closing, looked := make(chan struct{}), make(chan struct{})
		var pauses atomic.Int64
		l.mu.Lock()
		l.stepSize, l.atPause = 1, func() {
			switch pauses.Add(1) {
			case 1: // of the plan
				go set.Close()
				<-closing
			case 2: // of Close
				close(closing)
				<-looked
			}
		}
		ms[0].weight = 0
		ms[0].changed()
		l.mu.Unlock()
		time.Sleep(2 * planPeriod)
		close(looked)
		synctest.Wait()
		for _, lease := range leases {
			require.True(t, lease.end(endReleased))
		}
		l.mu.Lock()
		l.atPause = nil
		l.mu.Unlock()
		require.NoError(t, l.Check())
		require.Zero(t, set.Counters().MovesAsked)
	})
}

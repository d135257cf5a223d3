package state

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// virtual runs a test of an endpoint set with three ready members, in virtual time.
func virtual(t *testing.T, g Guards, test func(v *ReadySet)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		r := Open("").NewEndpointSet("test")
		r.SetGuards(g)
		v := r.NewReadySet(0)
		for i, m := range r.Update(nil, []Identity{{Addrs: []string{"a"}}, {Addrs: []string{"b"}}, {Addrs: []string{"c"}}}) {
			v.Set(m, 1, i)
		}
		test(v)
		r.Close()
	})
}

// rests reports whether the clock does nothing any more: no timer is pending.
func (l *Ledger) rests() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.clock.ticking && (l.clock.timer == nil || !l.clock.timer.Stop())
}

// restsAfter asserts that the clock ticks for that long from now on, and a tick
// or two, and rests then.
func restsAfter(t *testing.T, l *Ledger, d time.Duration) {
	t.Helper()
	if d > 0 {
		time.Sleep(d - Tick)
		synctest.Wait()
		require.False(t, l.rests())
	}
	time.Sleep(3 * Tick)
	synctest.Wait()
	require.True(t, l.rests())
	require.NoError(t, l.Check())
}

// Idle costs nothing: the clock ticks while it has something to do.
func TestClockRestsWhenIdle(t *testing.T) {
	virtual(t, Guards{FailurePenalty: time.Second, SlowStart: SlowStart{Window: time.Minute, MinWeightPercent: 10, Aggression: 1}}, func(v *ReadySet) {
		l := v.ledger
		require.True(t, l.rests(), "nothing has happened")
		leases := []Lease{acquire(t, v), acquire(t, v), acquire(t, v)}
		restsAfter(t, l, 0)
		time.Sleep(time.Hour)
		require.True(t, l.rests(), "RPCs in flight need no clock")
		leases[0].Release()
		require.True(t, l.rests())
		leases[1].Fail()
		require.True(t, l.rests(), "it lived long")

		for range 3 { // it ticks while RPCs are picked, on and on
			acquire(t, v).Release()
			time.Sleep(2 * Tick)
		}
		restsAfter(t, l, 0)

		acquire(t, v).Fail()
		restsAfter(t, l, time.Second)

		for m := range v.set.members {
			m.StartSlowly()
			v.Set(m, 1, nil)
			break
		}
		restsAfter(t, l, time.Minute)
		leases[2].Release()
	})
}

// A clock that has rested is right when it is wound again.
func TestClockIsRightAfterARest(t *testing.T) {
	virtual(t, Guards{FailurePenalty: time.Second}, func(v *ReadySet) {
		l := v.ledger
		for range 3 {
			time.Sleep(time.Hour + 7*time.Millisecond)
			lease := acquire(t, v)
			require.Equal(t, time.Since(l.clock.epoch), lease.entry.start)
			lease.Fail()
			restsAfter(t, l, time.Second)
		}
	})
}

// Nothing holds the clock when those it worked for are gone.
func TestClockRestsWhenAllHasGone(t *testing.T) {
	virtual(t, Guards{FailurePenalty: time.Minute, SlowStart: SlowStart{Window: time.Hour, MinWeightPercent: 10, Aggression: 1}}, func(v *ReadySet) {
		l := v.ledger
		for m := range v.set.members {
			m.StartSlowly()
			v.Set(m, 1, nil)
		}
		lease := acquire(t, v)
		acquire(t, v).Fail()
		time.Sleep(time.Second)
		require.False(t, l.rests())
		v.set.Close()
		lease.Fail() // the last of its endpoint
		restsAfter(t, l, 0)
		require.Empty(t, l.endpoints)
	})
}

// A pick reads the clock for nothing: it is behind by a tick at most, and a
// penalty ends at the first tick that is not too early.
func TestClockIsCoarse(t *testing.T) {
	virtual(t, Guards{FailurePenalty: 100 * time.Millisecond}, func(v *ReadySet) {
		first := acquire(t, v)
		time.Sleep(Tick / 2)
		second := acquire(t, v)
		require.Equal(t, first.entry.start, second.entry.start)
		time.Sleep(Tick)
		synctest.Wait()
		third := acquire(t, v)
		require.Equal(t, first.entry.start+Tick, third.entry.start)
		third.Fail()
		first.Release()
		second.Release()
		penalty := func() (sum int64) {
			for _, n := range v.ledger.Snapshot().Endpoints {
				sum += n.Penalty
			}
			return sum
		}
		time.Sleep(94 * time.Millisecond) // 109 since the first
		require.EqualValues(t, 1, penalty())
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		require.Zero(t, penalty())
	})
}

// Penalties that end within a tick are kept as one, however many they are.
func TestPenaltiesAreByTick(t *testing.T) {
	virtual(t, Guards{FailurePenalty: time.Second}, func(v *ReadySet) {
		for range 3000 {
			acquire(t, v).Fail()
			time.Sleep(Tick / 100)
		}
		v.ledger.mu.Lock()
		defer v.ledger.mu.Unlock()
		units := int64(0)
		for n := range v.ledger.endpoints {
			require.LessOrEqual(t, len(n.penalties), int(300*time.Millisecond/Tick)+1)
			units += n.load.penalty
		}
		require.EqualValues(t, 3000, units)
	})
}

// With very many members that start slowly, each factor lags by less than a twentieth
// of the window, and a tick has a part of them to change only.
func TestManySlowStartsLagLittle(t *testing.T) {
	const channels, window = 400, 10 * time.Second
	s := SlowStart{Window: window, MinWeightPercent: 1, Aggression: 1}
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, channels, Guards{SlowStart: s})
		c.inStepsOf(stepSize, nil)
		require.Equal(t, window/25, c.step(s), "a tick changes a fortieth of them")
		begin := time.Now()
		for age := time.Duration(0); age < window; age += window / 40 {
			time.Sleep(time.Until(begin.Add(age)))
			synctest.Wait()
			least, most := s.Factor(age-window/20), s.Factor(age)
			lowest, highest := c.factors()
			require.GreaterOrEqual(t, lowest, least, age)
			require.LessOrEqual(t, highest, most, age)
		}
		time.Sleep(time.Until(begin.Add(window)))
		synctest.Wait()
		c.mu.Lock()
		require.Zero(t, c.ramps)
		require.Equal(t, window/256, c.step(s))
		c.mu.Unlock()
		c.done()
	})
}

// factors returns the lowest and the highest slow start factor of all members.
func (c *crowd) factors() (lowest, highest float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lowest = 1
	for _, m := range slices.Concat(c.ms...) {
		lowest, highest = min(lowest, m.slowStart.factor), max(highest, m.slowStart.factor)
	}
	return lowest, highest
}

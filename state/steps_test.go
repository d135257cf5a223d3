package state

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// crowd is channels that list the same endpoints, on a ledger whose steps are as short
// as can be. At each pause others do something, and Check runs; less often after many.
type crowd struct {
	*testing.T
	*Ledger
	sets   []*EndpointSet
	ready  []*ReadySet
	ms     [][]*Member
	leases []Lease
	drains []*Drain
	pauses int
	first  func() // at the first pause
	random *rand.Rand
}

const crowdSize = 50

func newCrowd(t *testing.T, channels int, g Guards) *crowd {
	c := &crowd{T: t, Ledger: newLedger(""), random: rand.New(rand.NewPCG(1, 2))}
	for i := range channels {
		r := c.NewEndpointSet(fmt.Sprint("channel ", i))
		r.SetGuards(g)
		v := r.NewReadySet(0)
		ms := r.Update(nil, identities(crowdSize))
		for k, m := range ms {
			m.StartSlowly()
			v.Set(m, 1+uint32(k%3), k)
		}
		r.SetQueueSets(v)
		c.sets, c.ready, c.ms = append(c.sets, r), append(c.ready, v), append(c.ms, ms)
	}
	c.inStepsOf(1, c.pause)
	return c
}

// inStepsOf has work in steps pause after so many units, and call atPause then.
func (c *crowd) inStepsOf(units int, atPause func()) {
	c.mu.Lock() // the clock may tick
	defer c.mu.Unlock()
	c.stepSize, c.atPause = units, atPause
}

func identities(n int) []Identity {
	list := make([]Identity, n)
	for i := range list {
		list[i].Addrs = []string{fmt.Sprint("v4 ", i), fmt.Sprint("v6 ", i)}
	}
	return list
}

// acquire picks through a channel, which may not have anything to choose.
func (c *crowd) acquire(i int) {
	if lease, _, ok := c.ready[i].Acquire(); ok {
		c.leases = append(c.leases, lease)
	}
}

// pause does what others may do meanwhile.
func (c *crowd) pause() {
	if c.pauses++; c.pauses == 1 && c.first != nil {
		c.first()
	}
	if c.pauses > 300 && c.pauses%32 > 0 {
		return
	}
	require.NoError(c, c.Check())
	other := 1 + c.random.IntN(len(c.sets)-1)
	k := c.random.IntN(crowdSize)
	switch m, v := c.ms[other][k], c.ready[other]; c.random.IntN(10) {
	case 0, 1:
		c.acquire(other)
	case 2:
		c.end(endReleased)
	case 3:
		c.end(endFailed)
	case 4:
		v.Remove(m)
	case 5:
		v.Set(m, uint32(c.random.IntN(4)), k)
	case 6:
		m.SetMaxInFlight(uint32(c.random.IntN(3)))
	case 8:
		c.drains = append(c.drains, c.Drain(fmt.Sprint("v4 ", []int{k, 7}[c.random.IntN(2)])))
	case 9:
		if n := len(c.drains); n > 0 {
			c.drains[n-1].End()
			c.drains = c.drains[:n-1]
		}
	case 7:
		id := identities(crowdSize)[k]
		id.Addrs = id.Addrs[:1+c.random.IntN(2)]
		c.ms[other][k] = c.sets[other].Update([]*Member{m}, []Identity{id})[0]
	}
	require.NoError(c, c.Check())
}

// end ends some lease.
func (c *crowd) end(how ending) {
	if n := len(c.leases); n > 0 {
		i := c.random.IntN(n)
		require.True(c, c.leases[i].end(how))
		c.leases[i] = c.leases[n-1]
		c.leases = c.leases[:n-1]
	}
}

// done takes everything away, and nothing must be left.
func (c *crowd) done() {
	c.inStepsOf(1, nil)
	for _, r := range c.sets {
		r.Close()
	}
	for len(c.leases) > 0 {
		c.end(endReleased)
	}
	require.NoError(c, c.Check())
	require.Empty(c, c.endpoints)
	require.Empty(c, c.byAddr)
}

// What takes long takes a step for each thing that it does, and others come between.
func TestLongWorkLetsOthersBetween(t *testing.T) {
	g := Guards{
		FailurePenalty: 50 * time.Millisecond, MaxQueued: 100,
		SlowStart: SlowStart{Window: 10 * time.Second, MinWeightPercent: 1, Aggression: 1},
	}
	for name, tc := range map[string]struct {
		do     func(c *crowd)
		pauses int // at least
	}{
		"close":           {func(c *crowd) { c.sets[0].Close() }, crowdSize},
		"close ready set": {func(c *crowd) { c.ready[0].Close() }, crowdSize},
		"guards":          {func(c *crowd) { c.sets[0].SetGuards(Guards{}) }, crowdSize},
		"drain":           {func(c *crowd) { c.Drain("v4 7").End() }, 2 * 5},
		"page":            {func(c *crowd) { c.SnapshotInSteps() }, crowdSize},
		"gauges":          {func(c *crowd) { c.Totals(c.Totals(nil)) }, 2 * crowdSize},
		"slow start":      {func(*crowd) { time.Sleep(time.Second); synctest.Wait() }, 5 * 5 * crowdSize},
		"penalties": {func(c *crowd) {
			for range 3 * crowdSize {
				c.acquire(1)
			}
			for len(c.leases) > 0 {
				c.end(endFailed)
			}
			c.sets[0].SetGuards(Guards{})
			time.Sleep(time.Second)
			synctest.Wait()
		}, crowdSize},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t, 5, g)
				for i := range 60 {
					c.acquire(i % 5)
				}
				require.NoError(t, c.Check()) // what the clock does comes after it, for the race detector
				tc.do(c)
				require.GreaterOrEqual(t, c.pauses, tc.pauses)
				require.NoError(t, c.Check())
				c.done()
			})
		})
	}
}

// A snapshot of one moment lets nobody between.
func TestSnapshotIsOfOneMoment(t *testing.T) {
	c := newCrowd(t, 2, Guards{})
	c.Snapshot()
	require.Zero(t, c.pauses)
	c.done()
}

// From the first step of its Close on an endpoint set is closed, for all that is done
// with it. Its leases land.
func TestClosingSetIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 3, Guards{MaxQueued: 10})
		r, v, m := c.sets[0], c.ready[0], c.ms[0][7]
		for range 20 {
			c.acquire(0)
		}
		for _, m := range c.ms[0] {
			m.SetMaxInFlight(1)
		}
		for c.ready[0].full < crowdSize {
			c.acquire(0)
		}
		rpc, end := context.WithCancel(t.Context())
		defer end()
		_, _, outcome := r.AcquireOrQueue(rpc, nil, v)
		require.Equal(t, Queued, outcome)
		c.first = func() {
			for _, lease := range c.leases[:10] {
				require.True(t, lease.Release())
			}
			c.leases = c.leases[10:]
			_, _, ok := v.Acquire()
			require.False(t, ok)
			for range 2 {
				_, _, outcome = r.AcquireOrQueue(rpc, nil, v)
				require.Equal(t, Empty, outcome)
			}
			require.Zero(t, c.waiting)
			v.Set(m, 5, "new")
			late := r.NewReadySet(1)
			late.Set(m, 5, "new")
			_, _, ok = late.Acquire()
			require.False(t, ok)
			for _, m := range r.Update(c.ms[0][20:30], []Identity{{Addrs: []string{"new"}}, {Addrs: []string{"v4 3"}}}) {
				v.Set(m, 1, "new")
			}
			r.SetQueueSets(v)
			r.SetGuards(Guards{MaxQueued: 3})
			require.NoError(t, c.Check())
			r.Close() // it is on its way
			require.NoError(t, c.Check())
		}
		r.Close()
		require.GreaterOrEqual(t, c.pauses, crowdSize)
		require.NotContains(t, c.Ledger.sets, r)
		_, _, outcome = r.AcquireOrQueue(rpc, nil, v)
		require.Equal(t, Empty, outcome)
		c.done()
	})
}

// Room that penalties took is given to RPCs that wait before others come between: Check
// asserts at each pause that none waits while there is room.
func TestRoomOfPenaltiesIsGivenAtEachPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 2, Guards{FailurePenalty: 50 * time.Millisecond, MaxQueued: crowdSize})
		r, v := c.sets[0], c.ready[0]
		for _, m := range c.ms[0] {
			m.SetMaxInFlight(1)
		}
		var leases []Lease
		for range crowdSize {
			leases = append(leases, acquire(t, v))
		}
		for _, lease := range leases[1:] {
			require.True(t, lease.Fail()) // while the first one is busy
		}
		for range crowdSize / 2 {
			ctx, end := context.WithCancel(context.Background())
			defer end()
			_, _, outcome := r.AcquireOrQueue(ctx, nil, v)
			require.Equal(t, Queued, outcome)
		}
		granted := 0 // at the first pause that comes after a grant
		c.inStepsOf(1, func() {
			c.mu.Lock()
			if granted == 0 {
				granted = len(r.queue.granted)
			}
			c.mu.Unlock()
			require.NoError(t, c.Check())
		})
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 1, granted)
		leases[0].Release()
		c.done()
	})
}

package state

import "time"

// Tick is the resolution of a ledger's clock: penalties and waits end and ramping
// weights rise at its ticks.
const Tick = 10 * time.Millisecond

// clock is a ledger's coarse clock: a pick reads it for nothing. It ticks while
// RPCs are picked, penalties last, weights ramp, costs change or members connect, and rests
// otherwise.
// For plans alone it ticks slowly: a pick reads the time then.
type clock struct {
	epoch   time.Time
	now     time.Duration // since the epoch; behind by up to a tick while it ticks
	ticking bool
	slow    bool // it ticks for plans alone
	inTick  bool
	used    bool // since the last tick
	ticks   uint64
	timer   *time.Timer
}

// read brings the clock up to date.
func (c *clock) read() time.Duration {
	c.now = time.Since(c.epoch)
	return c.now
}

// startClock starts the clock of l, which may tick already.
func (l *Ledger) startClock() {
	c := &l.clock
	c.used = true
	if c.ticking && !c.slow {
		return
	}
	c.ticking, c.slow = true, false
	c.read()
	if c.timer == nil {
		c.timer = time.AfterFunc(Tick, l.tick)
	} else {
		c.timer.Reset(Tick)
	}
}

// tick does what is due. It takes the ledger's mutex.
func (l *Ledger) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.clock
	if c.inTick {
		return // the one before pauses, and sees to the next
	}
	c.inTick, c.slow = true, false
	c.ticks++
	c.read()
	l.expirePenalties()
	l.expireWaits()
	l.advanceSlowStarts()
	l.expireReserved()
	l.takeUpCosts()
	l.runPlans()
	c.inTick = false
	if c.used || len(l.penalized) > 0 || l.ramps > 0 || len(l.starting) > 0 || l.timeouts.Len() > 0 || l.cooling.Len() > 0 {
		c.used = false
		c.timer.Reset(Tick)
		return
	}
	c.slow = len(l.planning) > 0
	if c.ticking = c.slow; c.slow {
		c.timer.Reset(planPeriod)
	}
}

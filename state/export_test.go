package state

import "time"

// SetNow sets the ledger's clock, which goes on from there and has nothing to do at its
// ticks.
func (l *Ledger) SetNow(now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.clock
	c.epoch, c.now, c.ticking, c.used = time.Now().Add(-now), now, true, true
}

// Stall puts off the next tick, as where the process gets no processor.
func (l *Ledger) Stall(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.timer.Reset(d)
}

package state

import "time"

// Counters are what a roster has done since it began.
type Counters struct {
	Picks          uint64 `json:"picks"`          // leases, ever
	Queued         uint64 `json:"queued"`         // RPCs that had to wait
	Elsewhere      uint64 `json:"elsewhere"`      // later attempts that avoided the nodes tried since the RPC last started over
	Penalties      uint64 `json:"penalties"`      // units that failures have left
	DoubleReleases uint64 `json:"doubleReleases"` // leases given back once more: a bug of the caller, without effect
}

// account is what leases keep of their roster: it reaches no ledger, so that a
// released lease that is kept pins none. The ledger's mutex guards it.
type account struct {
	Counters               // the picks of views that are open are their own
	penalty  time.Duration // the guards' FailurePenalty
}

// Counters returns the roster's counters. They are kept when it is closed.
func (r *Roster) Counters() Counters {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	return r.counters()
}

func (r *Roster) counters() Counters {
	c := r.account.Counters
	for _, v := range r.views {
		c.Picks += v.picks
	}
	return c
}

package state

import "time"

// Counters are what an endpoint set has done since it began.
type Counters struct {
	Picks                  uint64 `json:"picks"`                  // leases, ever
	Queued                 uint64 `json:"queued"`                 // RPCs that had to wait
	RetriesToOtherEndpoint uint64 `json:"retriesToOtherEndpoint"` // later attempts that avoided the endpoints tried since the RPC last started over
	Penalties              uint64 `json:"penalties"`              // units that failures have left
	DoubleReleases         uint64 `json:"doubleReleases"`         // leases given back once more: a bug of the caller, without effect
}

// account is what leases keep of their endpoint set: it reaches no ledger, so that a
// released lease that is kept pins none. The ledger's mutex guards it.
type counters struct {
	Counters               // the picks of ready sets that are open are their own
	penalty  time.Duration // the guards' FailurePenalty
}

// Counters returns the endpoint set's counters. They are kept when it is closed.
func (r *EndpointSet) Counters() Counters {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	return r.counters()
}

func (r *EndpointSet) counters() Counters {
	c := r.account.Counters
	for _, v := range r.readySets {
		c.Picks += v.picks
	}
	return c
}

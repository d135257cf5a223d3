package state

import (
	"sync"
	"time"
)

// Guards are what an endpoint set protects its RPCs from. The zero value is none.
type Guards struct {
	// FailurePenalty is how long after its start an attempt that failed before
	// weighs on its endpoint; see [Lease.Fail]. Resolution [Tick]; 0: not at all.
	FailurePenalty time.Duration

	// SlowStart is how members that are new or come back take up load.
	SlowStart SlowStart

	// MaxQueued is how many RPCs of the endpoint set may wait at one time for a
	// member below its cap; 0: none.
	MaxQueued int

	// Wake is sent to, without blocking, when RPCs that wait have been given room:
	// they should call [EndpointSet.AcquireOrQueue] again. A buffer of one keeps
	// every signal.
	Wake chan<- struct{}
}

// SetGuards sets the endpoint set's guards. Slow starts go on by the new ones, step by
// step.
func (r *EndpointSet) SetGuards(g Guards) {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	r.guards, r.counters.penalty = g, g.FailurePenalty
	steps := r.ledger.inSteps()
	for m := range r.members {
		if m.readySet != nil {
			m.slowStart.nextStep = never
			m.changed()
			steps.did(unitChange)
		}
	}
}

// Counters are what an endpoint set has done since it began.
type Counters struct {
	Picks                  uint64 `json:"picks"`                  // leases, ever, that RPCs have taken up
	Queued                 uint64 `json:"queued"`                 // RPCs that had to wait
	RetriesToOtherEndpoint uint64 `json:"retriesToOtherEndpoint"` // later attempts that avoided the endpoints tried since the RPC last started over
	Penalties              uint64 `json:"penalties"`              // units that failures have left
	DoubleReleases         uint64 `json:"doubleReleases"`         // leases given back once more: a bug of the caller, without effect

	MovesAsked   MovesByReason `json:"movesAsked"`   // streams of sessions that were asked to go elsewhere
	MovesDone    MovesByReason `json:"movesDone"`    // those that have done so, and are over where they were
	MovesGivenUp MovesByReason `json:"movesGivenUp"` // those that have not within 10 s; some are under way
}

// counters are what leases keep of their endpoint set. They reach no ledger, so that
// a released lease that is kept pins none.
type counters struct {
	mu       *sync.Mutex   // the ledger's
	Counters               // the picks of ready sets that are open are their own
	penalty  time.Duration // the guards' FailurePenalty
	free     []*leaseEntry // of released leases, for the next ones
	closed   bool          // there are none: nothing is kept

	gone  map[string]EndpointCounts // of members that have left, by address, not taken yet
	taken EndpointCounts            // of all, ever
}

// Counters returns the endpoint set's counters. They are kept when it is closed.
func (r *EndpointSet) Counters() Counters {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	return r.countersLocked()
}

func (r *EndpointSet) countersLocked() Counters {
	c := r.counters.Counters
	for _, v := range r.readySets {
		c.Picks += v.picks
	}
	c.Picks -= r.queue.lost + uint64(len(r.queue.granted))
	return c
}

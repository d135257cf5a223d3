package state

import (
	"math"
	"time"
)

// Guards are what an endpoint set protects its RPCs from. The zero value is none.
type Guards struct {
	// FailurePenalty is how long after its start an attempt that failed before
	// weighs on its endpoint; see [Lease.Fail]. Resolution [Tick]; 0: not at all.
	FailurePenalty time.Duration

	// SlowStart is how members that are new or come back take up load.
	SlowStart SlowStart

	// MaxQueued is how many RPCs of the endpoint set may wait at one time for a member
	// below its cap; 0: none.
	MaxQueued int

	// Wake is sent to, without blocking, when RPCs that wait have been given room:
	// they should call [EndpointSet.AcquireOrQueue] again. A buffer of one keeps every signal.
	Wake chan<- struct{}
}

// SlowStart lets the weight of a member that is new, or back from a failure,
// rise to its full value over a window of time.
type SlowStart struct {
	Window           time.Duration // 0: off
	MinWeightPercent float64       // of the weight, at the start: above 0, at most 100
	Aggression       float64       // above 0; 1 is linear, more rises earlier
}

// leastShare bounds a share from below, so that scores and the picks between two
// of an empty member stay numbers that can be counted with.
const leastShare = 1e-6

// Factor returns the part of its weight that a member has at an age, by Envoy's
// definition (docs, "Slow start mode"):
// max(MinWeightPercent/100, (max(age, 1 s) / Window)^(1/Aggression)), at most 1
// and at least a millionth.
func (s SlowStart) Factor(age time.Duration) float64 {
	if age >= s.Window {
		return 1
	}
	passed := max(age, time.Second).Seconds() / s.Window.Seconds()
	return min(1, max(leastShare, s.MinWeightPercent/100, math.Pow(passed, 1/s.Aggression)))
}

// step is the time between two changes of a ramping weight.
func (s SlowStart) step() time.Duration { return max(Tick, s.Window/256) }

// Guard sets the endpoint set's guards; members that ramp go on by the new ones.
func (r *EndpointSet) SetGuards(g Guards) {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	r.guards, r.account.penalty = g, g.FailurePenalty
	for m := range r.members {
		if m.readySet != nil {
			m.ramp(r.ledger.clock.read())
			m.endpoint.updateEligibility()
		}
	}
}

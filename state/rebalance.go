package state

import "time"

// Rebalance says how an endpoint set's RPCs of sessions move. The zero value is not at
// all.
type Rebalance struct {
	PerSecond   float64       // how many are asked for level loads; 0: none is asked, for whatever reason
	MinAge      time.Duration // of an RPC that is asked for level loads
	DrainWithin time.Duration // in which those are asked that cannot stay

	// Planned is called, on a goroutine of its own, when RPCs are about to be asked. It
	// may be nil.
	Planned func(Plan)
}

// Plan is what is about to move: about so many RPCs, off an endpoint that they cannot
// stay on, or whose server has too much, or, without an address, off the busiest ones.
type Plan struct {
	Reason  MoveReason
	RPCs    int
	Address string
}

// SetRebalance sets how the endpoint set's RPCs of sessions move.
func (r *EndpointSet) SetRebalance(b Rebalance) {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	r.rebalance = b
}

// MoveReason is why an RPC is asked to move.
type MoveReason int

// The reasons. Of all but the first, RPCs cannot stay where they are.
const (
	MoveLevel      MoveReason = iota // another endpoint has less load
	MoveDraining                     // its endpoint has weight 0, or is drained
	MoveDeparted                     // its endpoint is not listed any more
	MovePriority                     // a higher priority level is in use
	MoveConnection                   // its connection takes no more RPCs: the server, or the policy, has closed it
	MoveNotReady                     // its endpoint is not ready, by its health or by outlier detection, and its connection is
	moveReasons
)

// MoveReasons are all of them.
var MoveReasons = []MoveReason{MoveLevel, MoveDraining, MoveDeparted, MovePriority, MoveConnection, MoveNotReady}

func (w MoveReason) String() string {
	return [moveReasons]string{"level", "draining", "departed", "priority", "connection", "not_ready"}[w]
}

// MovesByReason counts moves.
type MovesByReason struct {
	Level      uint64 `json:"level"`
	Draining   uint64 `json:"draining"`
	Departed   uint64 `json:"departed"`
	Priority   uint64 `json:"priority"`
	Connection uint64 `json:"connection"`
	NotReady   uint64 `json:"notReady"`
}

func (c *MovesByReason) of(w MoveReason) *uint64 {
	return [moveReasons]*uint64{&c.Level, &c.Draining, &c.Departed, &c.Priority, &c.Connection, &c.NotReady}[w]
}

// Of returns the count of one reason.
func (c MovesByReason) Of(w MoveReason) uint64 { return *c.of(w) }

// Sum returns the count of all.
func (c MovesByReason) Sum() (n uint64) {
	for _, w := range MoveReasons {
		n += c.Of(w)
	}
	return n
}

package state

import (
	"container/list"
	"sync"
	"time"
)

// Ledger holds the in-flight counts of one resource key, by endpoint.
type Ledger struct {
	key string // "" when private

	// mu guards all below and all of the ledger's endpoints, endpoint sets, members,
	// ready sets and lease entries. It is an object of its own: the lease of an RPC
	// that is over may be kept for long and reaches the mutex, not the ledger.
	//
	// Lock order: gRPC's stream locks and the balancer's locks come before mu.
	// Nothing is locked or called under it.
	mu        *sync.Mutex
	endpoints map[*endpoint]struct{}
	byID      map[string]*endpoint
	byAddr    map[string][]*endpoint // an address that endpoint sets list differently has several
	sets      map[*EndpointSet]struct{}
	updates   uint64 // of lists, ever
	made      uint64 // endpoints, ever
	leases    int64  // live ones

	clock     clock
	penalized map[*endpoint]struct{}    // endpoints with a penalty
	ramping   map[*EndpointSet]struct{} // endpoint sets with members that start slowly
	ramps     int                       // those members
	starting  map[*EndpointSet]struct{} // endpoint sets with a start-up
	arrivals  uint64                    // RPCs that had to wait, ever
	waiting   int                       // RPCs that wait
	timeouts  timeouts
	planning  map[*EndpointSet]struct{} // endpoint sets with a plan
	planAt    time.Duration             // when they are looked at next
	marks     int                       // leases that have one
	lives     lives                     // of RPCs, while reports come in

	extraUnits    int64      // what live leases cost beyond one unit each
	cooling       list.List  // of *leaseCost, whose units may change later, by when
	costs         *costSizes // of the leases that have some; nil: none has had one
	drainsInSteps int        // calls that bring members in line with drains

	totals   totals
	stepSize int    // see steps
	atPause  func() // for tests
}

func newLedger(key string) *Ledger {
	return &Ledger{
		key:       key,
		mu:        new(sync.Mutex),
		endpoints: map[*endpoint]struct{}{},
		byID:      map[string]*endpoint{},
		byAddr:    map[string][]*endpoint{},
		sets:      map[*EndpointSet]struct{}{},
		clock:     clock{epoch: time.Now()},
		penalized: map[*endpoint]struct{}{},
		ramping:   map[*EndpointSet]struct{}{},
		stepSize:  stepSize,
		starting:  map[*EndpointSet]struct{}{},
		planning:  map[*EndpointSet]struct{}{},
	}
}

// Key returns the resource key, "" for a private ledger.
func (l *Ledger) Key() string { return l.key }

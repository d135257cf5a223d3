package state

import (
	"sync"
	"time"
)

// Ledger holds the in-flight counts of one resource key, by node.
type Ledger struct {
	key string // "" when private

	// mu guards all below and all of the ledger's nodes, rosters, members, views
	// and slots. It is an object of its own: the lease of an RPC that is over may
	// be kept for long and reaches the mutex, not the ledger.
	//
	// Lock order: gRPC's stream locks and the balancer's locks come before mu;
	// nothing is locked or called under it.
	mu      *sync.Mutex
	nodes   map[*node]struct{}
	byID    map[string]*node
	byAddr  map[string][]*node // an address that rosters list differently has several
	rosters map[*Roster]struct{}
	made    uint64  // nodes, ever
	leases  int64   // live ones
	slots   []*slot // of live leases, and the free ones
	free    []*slot // of released leases, for the next ones

	clock    clock
	fined    map[*node]struct{}   // nodes with a penalty
	ramping  map[*Member]struct{} // members whose weight rises
	arrivals uint64               // RPCs that had to wait, ever
	waiting  int                  // RPCs that wait
}

func newLedger(key string) *Ledger {
	return &Ledger{
		key:     key,
		mu:      new(sync.Mutex),
		nodes:   map[*node]struct{}{},
		byID:    map[string]*node{},
		byAddr:  map[string][]*node{},
		rosters: map[*Roster]struct{}{},
		clock:   clock{epoch: time.Now()},
		fined:   map[*node]struct{}{},
		ramping: map[*Member]struct{}{},
	}
}

// Key returns the resource key, "" for a private ledger.
func (l *Ledger) Key() string { return l.key }

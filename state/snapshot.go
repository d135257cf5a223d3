package state

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Snapshot is a ledger at one moment, for people, tests and tools.
type Snapshot struct {
	ResourceKey  string                `json:"resourceKey"` // "" for a private ledger
	InFlight     int64                 `json:"inFlight"`    // live leases: attempts that run, and grants
	Granted      int64                 `json:"granted"`     // room that RPCs which wait were given and have not taken up
	Waiting      int64                 `json:"waiting"`     // RPCs that wait for room
	Reserved     int64                 `json:"reserved"`    // of those in flight, RPCs that wait for an endpoint to connect
	Moving       int64                 `json:"moving"`      // streams of sessions that were asked to go elsewhere, and may do so still
	Imbalance    float64               `json:"imbalance"`   // RPCs: most minus fewest in flight over relative weight, of those that are neither full nor start slowly
	Fleet        FleetSnapshot         `json:"fleet,omitzero"`
	Endpoints    []EndpointSnapshot    `json:"endpoints"`    // by first address, then id
	EndpointSets []EndpointSetSnapshot `json:"endpointSets"` // by name, cluster and locality
}

// EndpointSnapshot is one endpoint of a ledger.
type EndpointSnapshot struct {
	ID            string           `json:"id,omitempty"`
	Addresses     []string         `json:"addresses"` // sorted
	State         EndpointState    `json:"state"`
	Drained       bool             `json:"drained,omitempty"` // by Drain: it takes no new RPCs, whatever weights it has
	InFlight      int64            `json:"inFlight"`
	Units         int64            `json:"units"`         // what those cost: one each, unless their calls said more
	Granted       int64            `json:"granted"`       // of those, what RPCs that wait have not taken up
	Reserved      int64            `json:"reserved"`      // of those in flight, RPCs that wait for it to connect
	Leaving       int64            `json:"leaving"`       // of those in flight, streams of sessions that were asked to go elsewhere
	Arriving      int64            `json:"arriving"`      // of those in flight, places that are kept for such streams
	Picks         uint64           `json:"picks"`         // leases since the ledger knows the endpoint
	Penalty       int64            `json:"penalty"`       // units that fresh failures have left
	PenaltyRPCs   int64            `json:"penaltyRPCs"`   // the RPCs that these are of: at a cap each takes the room of one
	OldestSeconds float64          `json:"oldestSeconds"` // age of the oldest lease; 0 without one
	Members       []MemberSnapshot `json:"members"`       // by endpoint set; none once departed

	Number       uint64  `json:"number"`              // tells it from every other that the ledger has or had
	StateSeconds float64 `json:"stateSeconds"`        // how long it is in its state
	Highest      int64   `json:"highestInFlight"`     // since the ledger knows the endpoint
	Failures     uint64  `json:"failures,omitempty"`  // of its picks, attempts that failed
	MovedHere    uint64  `json:"movedHere,omitempty"` // streams of sessions that came because they were asked to move
	MovedAway    uint64  `json:"movedAway,omitempty"` // those that went elsewhere
}

// EndpointSetSnapshot is one balancer's part in a ledger.
type EndpointSetSnapshot struct {
	Name     string `json:"name"`
	Locality string `json:"locality,omitempty"` // what tells endpoint sets of one name apart: see SetLabels
	Cluster  string `json:"cluster,omitempty"`
	Waiting  int64  `json:"waiting"`  // RPCs that wait for room
	Granted  int64  `json:"granted"`  // RPCs that were given it and have not taken it up
	Reserved int64  `json:"reserved"` // RPCs that wait for an endpoint to connect
	Sessions int64  `json:"sessions"` // RPCs in flight that are sessions'
	Moving   int64  `json:"moving"`   // of sessions, those that move
	Counters
	Warnings []string `json:"warnings,omitempty"` // what of its configuration has no effect

	Config json.RawMessage `json:"config,omitempty"` // in use, with its defaults
}

// Snapshot returns the ledger as it is now. The slices are the caller's.
func (l *Ledger) Snapshot() Snapshot { return l.snapshot(false) }

// SnapshotInSteps is Snapshot for ledgers of any size: no pick waits for all of it. Its
// figures are of slightly different moments. What is in flight adds up, but an RPC may
// be missing, or be there twice, that began or ended meanwhile; so may an endpoint that
// came or went.
func (l *Ledger) SnapshotInSteps() Snapshot { return l.snapshot(true) }

// snapshot does outside of the mutex what can be done there: most of the time goes
// into sorting and allocating.
func (l *Ledger) snapshot(inSteps bool) Snapshot {
	s := l.collect(inSteps)
	loads := make([]levelLoad, 0, len(s.Endpoints))
	for i := range s.Endpoints {
		n := &s.Endpoints[i]
		n.Addresses = slices.Clone(n.Addresses)
		slices.SortFunc(n.Members, func(a, b MemberSnapshot) int {
			return cmp.Or(cmp.Compare(a.EndpointSet, b.EndpointSet), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Locality, b.Locality), cmp.Compare(a.Priority, b.Priority))
		})
		n.State = n.state()
		n.StateSeconds = n.stateSeconds()
		s.InFlight += n.InFlight
		s.Granted += n.Granted
		s.Reserved += n.Reserved
		if m, ok := n.Eligible(); ok {
			loads = append(loads, levelLoad{
				priority: m.Priority, weight: m.Weight, inFlight: n.InFlight, units: n.Units, penalty: n.Penalty,
				heldBack: n.heldBack(m.Priority), report: n.Report(),
			})
		}
		s.Fleet.add(n.Report())
	}
	s.Imbalance, s.Fleet.Imbalance = imbalance(loads), fleetImbalance(loads)
	slices.SortFunc(s.Endpoints, func(a, b EndpointSnapshot) int {
		return cmp.Or(slices.Compare(a.Addresses, b.Addresses), cmp.Compare(a.ID, b.ID), cmp.Compare(a.InFlight, b.InFlight))
	})
	for i := range s.EndpointSets {
		s.EndpointSets[i].Config = slices.Clone(s.EndpointSets[i].Config)
	}
	slices.SortFunc(s.EndpointSets, func(a, b EndpointSetSnapshot) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Locality, b.Locality), cmp.Compare(b.Picks, a.Picks))
	})
	return s
}

// collect does what needs the ledger's mutex, and takes it. The addresses are the
// ledger's still, and the configurations the endpoint sets'.
func (l *Ledger) collect(inSteps bool) Snapshot {
	endpoints, members := l.size()
	s := Snapshot{
		ResourceKey: l.key,
		Endpoints:   make([]EndpointSnapshot, 0, endpoints), EndpointSets: []EndpointSetSnapshot{},
	}
	all := make([]MemberSnapshot, 0, members) // of all endpoints: one allocation
	l.mu.Lock()
	defer l.mu.Unlock()
	steps := l.inSteps()
	did := func(units int) {
		if inSteps {
			steps.did(units)
		}
	}
	s.Waiting = int64(l.waiting)
	s.Fleet.IntervalSeconds = l.reportIntervalLocked().Seconds()
	for r := range l.sets {
		s.EndpointSets = append(s.EndpointSets, r.snapshot())
		s.Moving += r.plan.moving()
		did(unitLook)
	}
	now := l.clock.read()
	for n := range l.endpoints {
		first := len(all)
		e := n.snapshot(now)
		for _, m := range n.members {
			all = append(all, m.snapshot(l.clock.epoch.Add(now)))
			e.Reserved += m.reserved()
		}
		e.Members = all[first:len(all):len(all)]
		s.Endpoints = append(s.Endpoints, e)
		did(unitLook * 2 * (1 + len(n.members)))
	}
	return s
}

// size returns how many endpoints and members there are, and some more, since it is
// of now. It takes the ledger's mutex.
func (l *Ledger) size() (endpoints, members int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.sets {
		members += len(r.members)
	}
	const more = 16
	return len(l.endpoints) + len(l.endpoints)/more + 1, members + members/more + 1
}

func (n *endpoint) snapshot(now time.Duration) EndpointSnapshot {
	return EndpointSnapshot{
		ID:            n.id,
		Addresses:     n.addrs,
		Drained:       n.isDrained(),
		InFlight:      n.load.inFlight,
		Units:         n.load.units,
		Granted:       n.granted,
		Leaving:       int64(n.asked),
		Arriving:      int64(n.arriving),
		Picks:         n.picks,
		Penalty:       n.load.penalty,
		PenaltyRPCs:   n.load.failed,
		OldestSeconds: n.oldest(now).Seconds(),

		Number:       n.number,
		StateSeconds: n.departed(now).Seconds(),
		Highest:      int64(n.highest),
		Failures:     n.failures,
		MovedHere:    n.movedHere,
		MovedAway:    n.movedAway,
	}
}

// departed returns how long n has had no member, 0 while it has one.
func (n *endpoint) departed(now time.Duration) time.Duration {
	if len(n.members) > 0 {
		return 0
	}
	return now - n.departedAt
}

// oldest returns the age of n's oldest lease, 0 without one.
func (n *endpoint) oldest(now time.Duration) time.Duration {
	if n.leases.oldest == nil {
		return 0
	}
	return now - n.leases.oldest.start
}

func (r *EndpointSet) snapshot() EndpointSetSnapshot {
	is := r.labels.Value()
	return EndpointSetSnapshot{
		Sessions: r.plan.sessions(), Moving: r.plan.moving(),
		Name: is.Target, Locality: is.Locality, Cluster: is.Cluster, Waiting: int64(r.queue.waiting()), Granted: int64(len(r.queue.granted)), Reserved: r.startup.reserved(),
		Counters: r.countersLocked(), Warnings: slices.Clone(r.warnings), Config: r.config,
	}
}

// Snapshots returns the snapshots of all ledgers in use, by resource key.
func Snapshots() []Snapshot { return snapshots(false) }

// SnapshotsInSteps is Snapshots with [Ledger.SnapshotInSteps].
func SnapshotsInSteps() []Snapshot { return snapshots(true) }

func snapshots(inSteps bool) []Snapshot {
	var all []Snapshot
	for _, l := range Ledgers() {
		all = append(all, l.snapshot(inSteps))
	}
	slices.SortFunc(all, func(a, b Snapshot) int {
		return cmp.Or(cmp.Compare(a.ResourceKey, b.ResourceKey), cmp.Compare(b.InFlight, a.InFlight))
	})
	return all
}

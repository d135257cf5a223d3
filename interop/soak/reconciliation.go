package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// reconciliation is what each party says at one moment of what is in flight.
type reconciliation struct {
	counts      counts                       // the ledgers', of every node that they have and by key
	members     map[listing]int              // the ledgers' members
	listed      map[listing]bool             // what channels list
	open        map[location]int             // attempts, as gRPC has told them
	unconnected int                          // attempts that have no connection yet
	counted     map[string]int               // the ledgers' counts by member
	served      map[string]int               // what servers see, by member
	reported    map[string]int               // what servers would report, by member
	abandoned   map[string]int               // what servers have ended and the client has not noticed, by member
	waiting     map[string]int               // RPCs that wait for room, by resource key
	arriving    map[string]int               // places that are kept for sessions that move, by resource key
	streams     map[conn]int                 // attempts that are open on each connection
	room        map[listing]room             // what connections may have
	snapshots   []leastconnbalancer.Snapshot // where counts come from
}

// listing is a node as one endpoint set, a channel's, has it.
type listing struct {
	location    location
	endpointSet string
}

// reconcile asks all parties of an environment.
func reconcile(s *env, a *attempts) (reconciliation, error) {
	m := a.mark()
	b := reconciliation{
		members: map[listing]int{}, listed: map[listing]bool{}, open: map[location]int{}, counted: map[string]int{},
		abandoned: m.abandoned, waiting: map[string]int{}, arriving: map[string]int{}, streams: m.streams, room: map[listing]room{},
		served: s.fleet.served(), reported: s.fleet.reported(), snapshots: leastconnbalancer.Snapshots(),
	}
	for p, at := range m.connected {
		if p.node != "" {
			b.open[p] = len(at)
		}
	}
	for _, n := range m.unconnected {
		b.unconnected += n
	}
	for _, c := range s.channels {
		for _, m := range c.members() {
			b.listed[listing{c.location(m.current().addr), c.target()}] = true
		}
	}
	for _, snapshot := range b.snapshots {
		b.waiting[keyOf(snapshot)] += int(snapshot.Waiting + snapshot.Granted)
		for _, n := range snapshot.Endpoints {
			b.counted[s.fleet.owner(addrOf(n)).member] += int(n.InFlight - n.Arriving)
			b.arriving[keyOf(snapshot)] += int(n.Arriving)
			for _, m := range n.Members {
				b.members[listing{s.fleet.locationOf(snapshot, n), m.EndpointSet}]++
			}
		}
	}
	b.noteRoom(s)
	var err error
	b.counts, err = countsOf(b.snapshots, s)
	return b, err
}

// check says where they differ while nothing begins and nothing ends.
func (b reconciliation) check() error {
	var errs []error
	if b.unconnected != 0 {
		errs = append(errs, fmt.Errorf("%d attempts are still on their way to a server", b.unconnected))
	}
	for key, n := range b.waiting {
		if n != 0 {
			errs = append(errs, fmt.Errorf("ledger %q has %d that wait for room", key, n))
		}
	}
	errs = append(errs, b.checkRoom()...)
	for p, n := range b.counts {
		if p.node != "" && n != b.open[p] {
			errs = append(errs, fmt.Errorf("%v has %d in flight, %d are open", p, n, b.open[p]))
		}
	}
	for p, n := range b.open {
		if _, ok := b.counts[p]; !ok {
			errs = append(errs, fmt.Errorf("%v is not known, %d are open", p, n))
		}
	}
	for l := range b.listed {
		if b.members[l] == 0 {
			errs = append(errs, fmt.Errorf("%v is no member of %s, which lists it", l.location, l.endpointSet))
		}
	}
	for l, n := range b.members {
		if n > 1 || !b.listed[l] {
			errs = append(errs, fmt.Errorf("%v is a member of %s %d times, which lists it: %t", l.location, l.endpointSet, n, b.listed[l]))
		}
	}
	servers := maps.Clone(b.served)
	maps.Copy(servers, b.counted)
	maps.Copy(servers, b.abandoned)
	for m := range servers {
		if b.counted[m] != b.served[m]+b.abandoned[m] {
			errs = append(errs, fmt.Errorf("server %s sees %d, %d more are abandoned, and %d are counted",
				m, b.served[m], b.abandoned[m], b.counted[m]))
		}
	}
	for m, n := range b.served {
		if b.reported[m] != n {
			errs = append(errs, fmt.Errorf("server %s reports %d, and sees %d", m, b.reported[m], n))
		}
	}
	return sorted(errs)
}

// idle says what is still in flight.
func (b reconciliation) idle() error {
	var errs []error
	for p, n := range b.counts {
		if p.node == "" && n != 0 {
			errs = append(errs, fmt.Errorf("%v has %d in flight after all RPCs have ended", p, n))
		}
	}
	for key, n := range b.arriving {
		if n != 0 {
			errs = append(errs, fmt.Errorf("ledger %q keeps %d places after all sessions have ended", key, n))
		}
	}
	for m, n := range b.served {
		if n != 0 {
			errs = append(errs, fmt.Errorf("server %s sees %d after all RPCs have ended", m, n))
		}
	}
	return sorted(errs)
}

// endDelay is how much later than the policy gRPC may tell an attempt's end: one goroutine does both, one right after the
// other, but on a busy machine it may have to wait in between.
const endDelay = 5 * time.Second

// counts are what the ledgers say, by location and, with no node, by key. Places that are kept for sessions that move are
// left out: no RPC has them.
type counts map[location]int

// countsOf reads snapshots, and refuses what no ledger may say.
func countsOf(snapshots []leastconnbalancer.Snapshot, e *env) (counts, error) {
	c := counts{}
	ours := map[string]bool{}
	for _, ch := range e.channels {
		ours[ch.spec.policy.ResourceKey] = true
	}
	for _, s := range snapshots {
		if !ours[keyOf(s)] {
			return nil, fmt.Errorf("there is a ledger %q that no channel has asked for", s.ResourceKey)
		}
		if s.InFlight < 0 {
			return nil, fmt.Errorf("ledger %q has %d in flight", s.ResourceKey, s.InFlight)
		}
		arriving := 0
		known := map[location]bool{}
		for _, n := range s.Endpoints {
			p := e.fleet.locationOf(s, n)
			if known[p] {
				return nil, fmt.Errorf("ledger %q has two nodes of %s, whose endpoints always share an address or an id", s.ResourceKey, p.node)
			}
			known[p] = true
			if n.InFlight < 0 {
				return nil, fmt.Errorf("node %q of ledger %q has %d in flight", n.Addresses, s.ResourceKey, n.InFlight)
			}
			c[p] += int(n.InFlight - n.Arriving)
			arriving += int(n.Arriving)
		}
		c[location{key: keyOf(s)}] += int(s.InFlight) - arriving
	}
	return c, nil
}

// keyOf returns the resource key that the ledger's channels have when nothing has moved them.
func keyOf(s leastconnbalancer.Snapshot) string { return strings.TrimSuffix(s.ResourceKey, moved) }

// placeOf returns where a ledger's node is. That of no server is known by its address.
func (f *fleet) locationOf(s leastconnbalancer.Snapshot, n leastconnbalancer.EndpointSnapshot) location {
	addr := addrOf(n)
	return location{keyOf(s), cmp.Or(n.ID, f.owner(addr).server, addr)}
}

// addrOf returns an address of the node. All that it has are one server's.
func addrOf(n leastconnbalancer.EndpointSnapshot) string {
	if len(n.Addresses) == 0 {
		return "nowhere"
	}
	return n.Addresses[0]
}

// sorted joins errors in an order that does not depend on chance.
func sorted(errs []error) error {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// String names the location for people.
func (p location) String() string {
	if p.node == "" {
		return fmt.Sprintf("ledger %q", p.key)
	}
	return fmt.Sprintf("node %s of ledger %q", p.node, p.key)
}

package main

import (
	"fmt"
	"maps"

	"github.com/leastconn/grpc-leastconn/state"
)

// books is what each party says at one moment of what is in flight.
type books struct {
	counts    counts           // the ledgers', of every node that they have and by key
	members   map[listing]int  // the ledgers' members
	listed    map[listing]bool // what channels list
	open      map[place]int    // attempts, as gRPC has told them
	unplaced  int              // attempts that have no connection yet
	counted   map[string]int   // the ledgers' counts by member
	served    map[string]int   // what servers see, by member
	abandoned map[string]int   // what servers have ended and the client has not noticed, by member
	snapshots []state.Snapshot // where counts come from
}

// listing is a node as one roster, a channel's, has it.
type listing struct {
	place  place
	roster string
}

// keep writes down the books of a site.
func keep(s *site, a *attempts) (books, error) {
	m := a.mark()
	b := books{
		members: map[listing]int{}, listed: map[listing]bool{}, open: map[place]int{}, counted: map[string]int{},
		abandoned: m.abandoned, served: s.fleet.served(), snapshots: state.Snapshots(),
	}
	for p, at := range m.placed {
		if p.node != "" {
			b.open[p] = len(at)
		}
	}
	for _, n := range m.unplaced {
		b.unplaced += n
	}
	for _, c := range s.channels {
		for _, m := range c.members() {
			b.listed[listing{c.place(m.now().addr), c.now().Conn().CanonicalTarget()}] = true
		}
	}
	for _, snapshot := range b.snapshots {
		for _, n := range snapshot.Endpoints {
			b.counted[s.fleet.owner(addrOf(n)).member] += int(n.InFlight)
			for _, m := range n.Members {
				b.members[listing{s.fleet.placeOf(snapshot, n), m.EndpointSet}]++
			}
		}
	}
	var err error
	b.counts, err = countsOf(b.snapshots, s)
	return b, err
}

// check says where the books differ while nothing begins and nothing ends.
func (b books) check() error {
	var errs []error
	if b.unplaced != 0 {
		errs = append(errs, fmt.Errorf("%d attempts are still on their way to a server", b.unplaced))
	}
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
			errs = append(errs, fmt.Errorf("%v is no member of %s, which lists it", l.place, l.roster))
		}
	}
	for l, n := range b.members {
		if n > 1 || !b.listed[l] {
			errs = append(errs, fmt.Errorf("%v is a member of %s %d times, which lists it: %t", l.place, l.roster, n, b.listed[l]))
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
	return sorted(errs)
}

// idle says what is still in flight.
func (b books) idle() error {
	var errs []error
	for p, n := range b.counts {
		if p.node == "" && n != 0 {
			errs = append(errs, fmt.Errorf("%v has %d in flight after all RPCs have ended", p, n))
		}
	}
	for m, n := range b.served {
		if n != 0 {
			errs = append(errs, fmt.Errorf("server %s sees %d after all RPCs have ended", m, n))
		}
	}
	return sorted(errs)
}

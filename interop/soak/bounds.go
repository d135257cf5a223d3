package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// settling is how much later than the policy gRPC may tell an attempt's end: one goroutine does both, one right after the
// other, but on a busy machine it may have to wait in between.
const settling = 2 * time.Second

// counts are what the ledgers say, by place and, with no node, by key.
type counts map[place]int

// countsOf reads snapshots, and refuses what no ledger may say.
func countsOf(snapshots []state.Snapshot, site *site) (counts, error) {
	c := counts{}
	ours := map[string]bool{}
	for _, ch := range site.channels {
		ours[ch.spec.policy.ResourceKey] = true
	}
	for _, s := range snapshots {
		if !ours[keyOf(s)] {
			return nil, fmt.Errorf("there is a ledger %q that no channel has asked for", s.ResourceKey)
		}
		if s.InFlight < 0 {
			return nil, fmt.Errorf("ledger %q has %d in flight", s.ResourceKey, s.InFlight)
		}
		c[place{key: keyOf(s)}] += int(s.InFlight)
		known := map[place]bool{}
		for _, n := range s.Endpoints {
			p := site.fleet.placeOf(s, n)
			if known[p] {
				return nil, fmt.Errorf("ledger %q has two nodes of %s, whose endpoints always share an address or an id", s.ResourceKey, p.node)
			}
			known[p] = true
			if n.InFlight < 0 {
				return nil, fmt.Errorf("node %q of ledger %q has %d in flight", n.Addresses, s.ResourceKey, n.InFlight)
			}
			c[p] += int(n.InFlight)
		}
	}
	return c, nil
}

// keyOf returns the resource key that the ledger's channels have when nothing has moved them.
func keyOf(s state.Snapshot) string { return strings.TrimSuffix(s.ResourceKey, moved) }

// placeOf returns where a ledger's node is. That of no server is known by its address.
func (f *fleet) placeOf(s state.Snapshot, n state.EndpointSnapshot) place {
	addr := addrOf(n)
	return place{keyOf(s), cmp.Or(n.ID, f.owner(addr).server, addr)}
}

// addrOf returns an address of the node. All that it has are one server's.
func addrOf(n state.EndpointSnapshot) string {
	if len(n.Addresses) == 0 {
		return "nowhere"
	}
	return n.Addresses[0]
}

// sample is what the ledgers said at a moment, and what was open just before and had been begun just after.
type sample struct {
	counts    counts
	before    mark
	begun     map[string]int
	at        time.Time // after the snapshots
	snapshots []state.Snapshot
}

// tooHigh says where more is counted than attempts can have been open. One that has no connection yet may be picked for
// again after a channel has moved, and ledgers are read one after another: it may show in each of a key.
func (s sample) tooHigh() error {
	var errs []error
	ledgers := map[string]int{}
	for _, l := range s.snapshots {
		ledgers[keyOf(l)]++
	}
	for p, got := range s.counts {
		placed, unplaced := len(s.before.placed[p]), s.before.unplaced[p.key]
		begun := s.begun[p.key] - s.before.begun[p.key]
		if most := placed + (unplaced+begun)*ledgers[p.key]; got > most {
			errs = append(errs, fmt.Errorf("%v has %d in flight, at most %d can be: %d were open there, %d on their way, %d begun since",
				p, got, most, placed, unplaced, begun))
		}
	}
	return sorted(errs)
}

// tooLow says where less is counted than attempts were open all the time. open tells how many of them still were when
// ends until then had been told.
func (s sample) tooLow(open func([]*attempt, time.Time) int) error {
	var errs []error
	for p, placed := range s.before.placed {
		if got, least := s.counts[p], open(placed, s.at.Add(settling)); got < least {
			errs = append(errs, fmt.Errorf("%v has %d in flight, but %d that were open there before still were %v later",
				p, got, least, settling))
		}
	}
	return sorted(errs)
}

// sorted joins errors in an order that does not depend on chance.
func sorted(errs []error) error {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// String names the place for people.
func (p place) String() string {
	if p.node == "" {
		return fmt.Sprintf("ledger %q", p.key)
	}
	return fmt.Sprintf("node %s of ledger %q", p.node, p.key)
}

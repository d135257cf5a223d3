package leastconnbalancer

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/state"
)

// Drain keeps new RPCs from an endpoint, with any resolver and for all channels of the
// process that share its load, until undrain is called. RPCs in flight go on; streams that
// can move do so within [Rebalance].DrainWithin. It acts as a weight of 0, whatever weight
// the resolver gives: a priority level whose endpoints are all drained is passed over, and
// where all endpoints are RPCs fail with UNAVAILABLE.
//
// key is a resource key (see [Config]), or a target, as it was dialled or in its canonical
// form, which means every resource key that channels with this target use. address is one of the
// endpoint's addresses, as [Snapshots] show them, or its id. An address that several endpoints
// have means all of them. It is an error when no channel lists the endpoint; the text says
// what is known. undrain is a function even then, which does nothing.
//
// A drain outlasts new lists, weights, connections and health checks. It ends by undrain, or
// when no channel lists the endpoint any more: one that comes back later is not drained. So
// it ends, too, when the only channel that lists it is closed, idle or sent an empty list.
// Drains of one endpoint count: it takes RPCs again when each has ended. After that a slow
// start goes on where it would be.
//
// No new RPC is sent to the endpoint once Drain has returned. Drain and undrain may be called
// from any goroutine, undrain any number of times and at any time. Neither waits for gRPC.
func Drain(key, address string) (undrain func(), err error) {
	var drains []*state.Drain
	for _, l := range ledgersOf(key) {
		if d := l.Drain(address); d != nil {
			drains = append(drains, d)
		}
	}
	undrain = func() {
		for _, d := range drains {
			d.End()
		}
	}
	if len(drains) == 0 {
		return undrain, notListed(key, address)
	}
	return undrain, nil
}

// ledgersOf returns the ledger of a resource key and those that channels with that target use.
func ledgersOf(key string) (all []*state.Ledger) {
	if key == "" {
		return nil // a private one has no name
	}
	targets := canonicalTargets(key)
	for _, l := range state.Ledgers() {
		if l.Key() == key || l.Named(targets...) {
			all = append(all, l)
		}
	}
	return all
}

// canonicalTargets returns what a target that was dialled may be in its canonical form.
func canonicalTargets(dialled string) (all []string) {
	for _, prefix := range []string{"", resolver.GetDefaultScheme() + ":///", "dns:///"} {
		if u, err := url.Parse(prefix + dialled); err == nil {
			all = append(all, resolver.Target{URL: *u}.String())
		}
	}
	return all
}

// notListed says that no channel lists the endpoint, and what is known.
func notListed(key, address string) error {
	var known []string
	for _, l := range ledgersOf(key) {
		for _, n := range l.SnapshotInSteps().Endpoints {
			if len(n.Members) > 0 {
				known = append(known, n.Address())
			}
		}
	}
	if known != nil {
		return fmt.Errorf("%s: Drain: no channel of %.100q lists an endpoint %.100q: it has %s", Name, key, address, some(known))
	}
	for _, l := range state.Ledgers() {
		if l.Key() != "" {
			known = append(known, l.Key())
		}
	}
	slices.Sort(known)
	return fmt.Errorf("%s: Drain: no channel has the resource key or target %.100q, to drain %.100q there: in use are %s", Name, key, address, some(known))
}

// some names the first of what is known.
func some(known []string) string {
	const most = 5
	if len(known) == 0 {
		return "none"
	}
	quoted := make([]string, min(len(known), most))
	for i := range quoted {
		quoted[i] = fmt.Sprintf("%.100q", known[i])
	}
	text := strings.Join(quoted, ", ")
	if more := len(known) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// updateDrains takes up which endpoints are drained now. The ledger calls it when that has
// changed.
func (b *leastConn) updateDrains() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.updateDrainsLocked()
	b.publishLocked()
}

// updateDrainsLocked has levels know which children are drained. Picks know it before.
func (b *leastConn) updateDrainsLocked() {
	if b.load.set == nil {
		return
	}
	drained := b.load.set.Drained()
	if len(drained) == 0 && !b.load.drains {
		return
	}
	b.load.drains = len(drained) > 0
	for _, c := range b.children.listed {
		_, is := drained[c.member]
		if c.drained != is && c.state != connectivity.Shutdown {
			b.setDrainedLocked(c, is)
		}
	}
	b.outage.refreshLastErrorLocked(b.children.listed)
}

// setDrainedLocked has c take part in its level, or not.
func (b *leastConn) setDrainedLocked(c *child, drained bool) {
	l := c.level
	l.remove(c)
	c.drained = drained
	l.add(c)
	if drained {
		l.connectedLocked(c)
	}
	l.updateFailover()
	b.levels.updateStartupLocked(l)
	b.logDrained(c)
}

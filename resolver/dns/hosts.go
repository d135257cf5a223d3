package dns

import (
	"context"
	"net/netip"
	"slices"
	"sync"
)

// parallel is how many hosts are asked for at a time.
const parallel = 8

// hosts looks up the addresses of host names and remembers them. It is not safe
// for concurrent use.
type hosts struct {
	source
	params
	known map[string]host // those of the last lookup
}

// host is what is remembered of a host name, by network.
type host map[string]*memory[netip.Addr]

// addresses are those of a host name.
type addresses struct {
	addrs   []netip.Addr // sorted, IPv4 first; without repeats
	settled bool         // whether that is all there is
	err     error        // what failed, or that there are none
}

// networks returns the networks to look up.
func (p params) networks() []string {
	switch p.family {
	case 4:
		return []string{"ip4"}
	case 6:
		return []string{"ip6"}
	}
	return []string{"ip4", "ip6"}
}

// lookUp returns the addresses of each of the names, and forgets all others.
func (h *hosts) lookUp(ctx context.Context, names ...string) map[string]addresses {
	known := make(map[string]host, len(names))
	for _, name := range names {
		if known[name] = h.known[name]; known[name] == nil {
			known[name] = host{"ip4": {}, "ip6": {}}
		}
	}
	h.known = known

	var tasks sync.WaitGroup
	slots := make(chan struct{}, parallel)
	var mu sync.Mutex // guards found
	found := make(map[string]addresses, len(known))
	for name, remembered := range known {
		tasks.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			a := h.lookUpOne(ctx, name, remembered)
			mu.Lock()
			defer mu.Unlock()
			found[name] = a
		})
	}
	tasks.Wait()
	return found
}

// lookUpOne looks one name up in all networks at a time.
func (h *hosts) lookUpOne(ctx context.Context, name string, remembered host) addresses {
	type outcome struct {
		use     []netip.Addr
		settled bool
		err     error
	}
	var tasks sync.WaitGroup
	outcomes := make([]outcome, len(h.networks()))
	for i, network := range h.networks() {
		tasks.Go(func() {
			got, err := h.addrs(ctx, network, name)
			use, settled := remembered[network].settle(got, err, h.emptyAfter)
			outcomes[i] = outcome{use, settled, err}
		})
	}
	tasks.Wait()

	a := addresses{settled: true}
	var failures, misses []error
	for _, o := range outcomes {
		a.addrs = append(a.addrs, o.use...)
		a.settled = a.settled && o.settled
		switch {
		case missing(o.err):
			misses = append(misses, o.err)
		case o.err != nil:
			failures = append(failures, o.err)
		}
	}
	slices.SortFunc(a.addrs, netip.Addr.Compare)
	a.addrs = slices.Compact(a.addrs)
	a.err = join(failures)
	if len(misses) == len(outcomes) {
		a.err = misses[0] // of one family is as it should be
	}
	return a
}

// hostLookup is the lookup of a dns-poll target.
type hostLookup struct {
	*hosts
	name string
	port uint16
}

func (l *hostLookup) look(ctx context.Context) answer {
	found := l.lookUp(ctx, l.name)[l.name]
	a := answer{known: found.settled, err: found.err}
	for _, addr := range found.addrs {
		a.endpoints = append(a.endpoints, endpoint{addr: netip.AddrPortFrom(addr, l.port)})
	}
	a.endpoints = tidy(a.endpoints)
	return a
}

// memory is the last good answer to one question. It is not safe for concurrent
// use.
type memory[T any] struct {
	good   []T
	misses int // answers in a row that there are no such records
}

// settle takes what came of asking again and returns what to use: a failure
// changes nothing, and a missing answer nothing until there were emptyAfter in a
// row. It also reports whether that is all there is: not when it failed or is
// not believed yet.
func (m *memory[T]) settle(got []T, err error, emptyAfter int) (use []T, settled bool) {
	if err == nil {
		m.good, m.misses = got, 0
		return got, true
	}
	if !missing(err) {
		m.misses = 0
		return m.good, false
	}
	if m.misses < emptyAfter {
		m.misses++
	}
	if m.misses < emptyAfter {
		return m.good, false
	}
	m.good = nil
	return nil, true
}

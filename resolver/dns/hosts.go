package dns

import (
	"context"
	"net/netip"
	"slices"
	"sync"
)

// maxParallel is how many hosts are asked for at a time.
const maxParallel = 8

// hosts looks up the addresses of host names and remembers them. It is not safe
// for concurrent use.
type hosts struct {
	source
	params
	byName map[string]host // those of the last lookup
}

// host is what is remembered of a host name, by network.
type host map[string]*lastGood[netip.Addr]

// addresses are those of a host name.
type addresses struct {
	addrs    []netip.Addr // sorted, IPv4 first; without repeats
	complete bool         // whether that is all there is
	err      error        // what failed, or that there are none
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

// lookupHosts returns the addresses of each of the names, and forgets all others.
func (h *hosts) lookupHosts(ctx context.Context, names ...string) map[string]addresses {
	byName := make(map[string]host, len(names))
	for _, name := range names {
		if byName[name] = h.byName[name]; byName[name] == nil {
			byName[name] = host{"ip4": {}, "ip6": {}}
		}
	}
	h.byName = byName

	var tasks sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	var mu sync.Mutex // guards found
	found := make(map[string]addresses, len(byName))
	for name, remembered := range byName {
		tasks.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			a := h.lookupHost(ctx, name, remembered)
			mu.Lock()
			defer mu.Unlock()
			found[name] = a
		})
	}
	tasks.Wait()
	return found
}

// lookupHost looks one name up in all networks at a time.
func (h *hosts) lookupHost(ctx context.Context, name string, remembered host) addresses {
	type outcome struct {
		use      []netip.Addr
		complete bool
		err      error
	}
	var tasks sync.WaitGroup
	outcomes := make([]outcome, len(h.networks()))
	for i, network := range h.networks() {
		tasks.Go(func() {
			got, err := h.addrs(ctx, network, name)
			use, complete := remembered[network].update(got, err, h.emptyAfter)
			outcomes[i] = outcome{use, complete, err}
		})
	}
	tasks.Wait()

	a := addresses{complete: true}
	var failures, misses []error
	for _, o := range outcomes {
		a.addrs = append(a.addrs, o.use...)
		a.complete = a.complete && o.complete
		switch {
		case isNotFound(o.err):
			misses = append(misses, o.err)
		case o.err != nil:
			failures = append(failures, o.err)
		}
	}
	slices.SortFunc(a.addrs, netip.Addr.Compare)
	a.addrs = slices.Compact(a.addrs)
	a.err = joinErrors(failures)
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

func (l *hostLookup) lookup(ctx context.Context) answer {
	found := l.lookupHosts(ctx, l.name)[l.name]
	a := answer{complete: found.complete, err: found.err}
	for _, addr := range found.addrs {
		a.endpoints = append(a.endpoints, endpoint{addr: netip.AddrPortFrom(addr, l.port)})
	}
	a.endpoints = normalize(a.endpoints)
	return a
}

// lastGood is the last good answer to one question. It is not safe for concurrent
// use.
type lastGood[T any] struct {
	answer []T
	misses int // answers in a row that there are no such records
}

// update takes what came of asking again and returns what to use: a failure
// changes nothing, and a missing answer nothing until there were emptyAfter in a
// row. It also reports whether that is all there is: not when it failed or is
// not believed yet.
func (m *lastGood[T]) update(got []T, err error, emptyAfter int) (use []T, complete bool) {
	if err == nil {
		m.answer, m.misses = got, 0
		return got, true
	}
	if !isNotFound(err) {
		m.misses = 0
		return m.answer, false
	}
	if m.misses < emptyAfter {
		m.misses++
	}
	if m.misses < emptyAfter {
		return m.answer, false
	}
	m.answer = nil
	return nil, true
}

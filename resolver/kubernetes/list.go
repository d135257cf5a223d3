package kubernetes

import (
	"maps"
	"slices"
	"time"
)

// list is what the channel uses, by key: what slices have, and for a while what
// none has any more. An endpoint moves from one slice to another by two events,
// and the one that takes it away may come first: it would be lost for a moment,
// and its streams told to move. Each family of addresses has slices of its own,
// so an address may be missing alone. An endpoint that a slice calls unready is
// taken away at once: that is no move.
type list map[string]listed

type listed struct {
	endpoint                      // with the addresses that are missing
	missing  map[string]time.Time // since when, by address
}

// update takes up what slices say now. It returns when it has to be called
// again though nothing has changed; zero: not at all.
func (l list) update(now time.Time, s service) (next time.Time) {
	present := make(map[string]endpoint, len(s.endpoints))
	taken := map[string]bool{}
	for _, e := range s.endpoints {
		present[e.key()] = e
		claim(taken, e.addresses)
	}
	for key, old := range l {
		e, found := present[key]
		if !found && s.unready[key] {
			delete(l, key)
			continue
		}
		missing := map[string]time.Time{}
		for _, a := range old.addresses {
			since, before := old.missing[a]
			if !before {
				since = now
			}
			end := since.Add(settle)
			if taken[a] || hasFamily(e.addresses, a) || !now.Before(end) {
				continue
			}
			missing[a] = since
			if next.IsZero() || end.Before(next) {
				next = end
			}
		}
		l.put(key, old.endpoint, e, missing)
	}
	for key, e := range present {
		if _, known := l[key]; !known {
			l[key] = listed{endpoint: e}
		}
	}
	return next
}

// put lists an endpoint with the addresses that it has now and those that are
// missing. What a slice says of it now holds; of one that no slice has, what was
// said last.
func (l list) put(key string, last, now endpoint, missing map[string]time.Time) {
	e := now
	if len(now.addresses) == 0 {
		e = last
	}
	e.addresses = slices.AppendSeq(slices.Clone(now.addresses), maps.Keys(missing))
	slices.SortFunc(e.addresses, byFamily)
	if len(e.addresses) == 0 {
		delete(l, key)
		return
	}
	l[key] = listed{endpoint: e, missing: missing}
}

func hasFamily(addresses []string, a string) bool {
	return slices.ContainsFunc(addresses, func(b string) bool { return isIPv6(a) == isIPv6(b) })
}

// endpoints returns all, sorted by key.
func (l list) endpoints() []endpoint {
	es := make([]endpoint, 0, len(l))
	for _, e := range l {
		es = append(es, e.endpoint)
	}
	sortByKey(es)
	return es
}

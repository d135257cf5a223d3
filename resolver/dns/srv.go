package dns

import (
	"context"
	"net"
	"net/netip"
	"slices"
)

// srvLookup is the lookup of an srv target.
type srvLookup struct {
	*hosts
	name        string
	lastRecords lastGood[*net.SRV]
}

func (l *srvLookup) lookup(ctx context.Context) answer {
	got, err := l.records(ctx, l.name)
	var errs []error
	if err != nil {
		errs = append(errs, err)
		if len(got) > 0 {
			err = nil
		}
	}
	records, complete := l.lastRecords.update(got, err, l.emptyAfter)
	var targets []string
	for _, r := range records {
		targets = append(targets, r.Target)
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)
	found := l.lookupHosts(ctx, targets...)
	for _, t := range targets {
		complete = complete && found[t].complete
		if err := found[t].err; err != nil {
			errs = append(errs, err)
		}
	}
	return answer{endpoints: endpointsOf(records, found), complete: complete, err: joinErrors(errs)}
}

// endpointsOf returns the endpoints of records whose targets have the addresses.
func endpointsOf(records []*net.SRV, hosts map[string]addresses) []endpoint {
	var list []endpoint
	for _, r := range records {
		at := func(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, r.Port) }
		e := endpoint{priority: r.Priority, weight: max(r.Weight, 1)}
		addrs := hosts[r.Target].addrs
		if len(addrs) == 2 && addrs[0].Is4() && addrs[1].Is6() {
			e.addr, e.second = at(addrs[1]), at(addrs[0])
			list = append(list, e)
			continue
		}
		for _, a := range addrs {
			e.addr = at(a)
			list = append(list, e)
		}
	}
	return normalize(list)
}

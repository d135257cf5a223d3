package kubernetes

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	discovery "k8s.io/api/discovery/v1"

	"github.com/leastconn/grpc-leastconn/resolver/kubernetes/internal/target"
)

// endpoint is a pod, or what a slice lists without naming a pod.
type endpoint struct {
	uid       string   // of the pod; "" of an endpoint that is known by its address
	addresses []string // host:port, IPv6 first
	draining  bool
	priority  uint32
}

// key is the same for the same endpoint.
func (e endpoint) key() string {
	if e.uid != "" {
		return "\x00" + e.uid
	}
	return e.addresses[0]
}

func (e endpoint) equal(other endpoint) bool {
	return e.uid == other.uid && e.draining == other.draining && e.priority == other.priority && slices.Equal(e.addresses, other.addresses)
}

// condition is how ready an endpoint is.
type condition int

const (
	unready condition = iota
	draining
	ready
)

// conditionOf reads the conditions of an endpoint, of which each may be unknown.
func conditionOf(c discovery.EndpointConditions) condition {
	is := func(c *bool, unknown bool) bool {
		if c == nil {
			return unknown
		}
		return *c
	}
	isReady := is(c.Ready, true)
	switch {
	case !is(c.Terminating, false):
		if isReady {
			return ready
		}
	case isReady || is(c.Serving, isReady):
		return draining
	}
	return unready
}

// service is what all slices of a service say together.
type service struct {
	endpoints []endpoint      // that can be used, sorted by key
	unready   map[string]bool // the keys of those that are listed and cannot be used
	ignored   error           // why slices, or endpoints of them, are left out; nil if none are
	empty     error           // why there are no endpoints, if there are none
}

// merging gathers what slices say of one endpoint.
type merging struct {
	endpoint
	condition
	elsewhere bool // whether all that list it have it for other zones
}

// merge reads the slices of the target's service. An endpoint that several of
// them list is one, in the best condition that one of them says: while it moves
// from one to the other, one of them is out of date.
func merge(t target.Target, known []*discovery.EndpointSlice) service {
	all := map[string]*merging{}
	var faults []error
	for _, slice := range known {
		if err := mergeSlice(t, all, slice); err != nil {
			faults = append(faults, fmt.Errorf("EndpointSlice %s: %w", slice.Name, err))
		}
	}
	s := service{unready: map[string]bool{}, endpoints: inUse(all), ignored: errors.Join(faults...)}
	for key, m := range all {
		if m.condition == unready {
			s.unready[key] = true
		}
	}
	switch {
	case len(known) == 0:
		s.empty = errors.New("it has no EndpointSlices: there is no such service, or one without a selector")
	case len(all) == 0 && len(faults) > 0:
		s.empty = faults[0]
	default:
		s.empty = fmt.Errorf("none of its %d endpoints is ready", len(all))
	}
	return s
}

// mergeSlice adds the endpoints of a slice. The error says why it adds none, or
// which it leaves out.
func mergeSlice(t target.Target, all map[string]*merging, slice *discovery.EndpointSlice) error {
	if slice.AddressType != discovery.AddressTypeIPv4 && slice.AddressType != discovery.AddressTypeIPv6 {
		return fmt.Errorf("addressType %q: want IPv4 or IPv6, for names use another resolver", slice.AddressType)
	}
	port, err := portOf(t, slice)
	if err != nil {
		return err
	}
	for _, ep := range slice.Endpoints {
		ip, invalid := ipOf(ep)
		if invalid != nil {
			err = fmt.Errorf("addresses %q: want an IP address", ep.Addresses)
			continue
		}
		e := endpoint{addresses: []string{net.JoinHostPort(ip.String(), strconv.Itoa(int(port)))}}
		if ep.TargetRef != nil {
			e.uid = string(ep.TargetRef.UID)
		}
		m := all[e.key()]
		if m == nil {
			m = &merging{endpoint: endpoint{uid: e.uid}, elsewhere: true}
			all[e.key()] = m
		}
		c := conditionOf(ep.Conditions)
		m.condition = max(m.condition, c)
		m.elsewhere = m.elsewhere && !near(t, ep)
		if c != unready {
			m.addresses = append(m.addresses, e.addresses...)
		}
	}
	return err
}

// ipOf returns the first address of an endpoint. No other has a meaning.
func ipOf(ep discovery.Endpoint) (netip.Addr, error) {
	if len(ep.Addresses) == 0 {
		return netip.Addr{}, errors.New("no address")
	}
	return netip.ParseAddr(ep.Addresses[0])
}

// near reports whether the target's zone is to use the endpoint: by its hints,
// or where it is if it has none.
func near(t target.Target, ep discovery.Endpoint) bool {
	if t.Zone == "" {
		return true
	}
	if ep.Hints == nil || len(ep.Hints.ForZones) == 0 {
		return ep.Zone != nil && *ep.Zone == t.Zone
	}
	return slices.ContainsFunc(ep.Hints.ForZones, func(z discovery.ForZone) bool { return z.Name == t.Zone })
}

// inUse returns the endpoints that are not unready, sorted by key. An address
// that two of them have belongs to the one that is in the better condition, as a
// pod in the host's network that has replaced another one.
func inUse(all map[string]*merging) []endpoint {
	var order []*merging
	for _, m := range all {
		if m.condition != unready {
			order = append(order, m)
		}
	}
	slices.SortFunc(order, func(a, b *merging) int {
		return cmp.Or(cmp.Compare(b.condition, a.condition), cmp.Compare(b.uid, a.uid), cmp.Compare(a.addresses[0], b.addresses[0]))
	})
	taken := map[string]bool{}
	var used []endpoint
	for _, m := range order {
		e := m.endpoint
		slices.SortFunc(e.addresses, byFamily)
		e.addresses = claim(taken, slices.Compact(e.addresses))
		e.draining = m.condition == draining
		if m.elsewhere {
			e.priority = 1
		}
		if len(e.addresses) > 0 {
			used = append(used, e)
		}
	}
	sortByKey(used)
	return used
}

// claim returns the addresses that were not taken, and takes them.
func claim(taken map[string]bool, addresses []string) []string {
	var claimed []string
	for _, a := range addresses {
		if !taken[a] {
			taken[a] = true
			claimed = append(claimed, a)
		}
	}
	return claimed
}

// isIPv6 tells by the brackets.
func isIPv6(address string) bool { return address[0] == '[' }

// byFamily has IPv6 first.
func byFamily(a, b string) int {
	if isIPv6(a) != isIPv6(b) {
		return cmp.Compare(b, a) // '[' is above all digits
	}
	return cmp.Compare(a, b)
}

func sortByKey(es []endpoint) {
	slices.SortFunc(es, func(a, b endpoint) int { return cmp.Compare(a.key(), b.key()) })
}

package kubernetes

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
)

func TestConditions(t *testing.T) {
	for set, want := range map[string]condition{
		"":        ready, // unknown
		"r s -t":  ready,
		"r":       ready,
		"-r s -t": unready,
		"-r":      unready,
		"-r s t":  draining,
		"-r -s t": unready,
		"-r t":    unready,
		"t":       draining,
		"r s t":   draining, // of a service that publishes pods before they are ready
		"r -s t":  draining,
	} {
		require.Equal(t, want, conditionOf(conditions(manual("10.0.0.1"), set).Conditions), set)
	}
}

// What slices say together is one list, in which each endpoint is once.
func TestSlicesAreMerged(t *testing.T) {
	for name, test := range map[string]struct {
		slices []*discovery.EndpointSlice
		want   []string
	}{
		"several slices": {
			[]*discovery.EndpointSlice{slice("1", pod("a", "10.0.0.1"), down("x", "10.0.0.9")), slice("2", pod("b", "10.0.0.2"), ending("c", "10.0.0.3"))},
			[]string{"a@10.0.0.1:50051", "b@10.0.0.2:50051", "c@10.0.0.3:50051 draining"},
		},
		"one pod in two slices": {
			[]*discovery.EndpointSlice{slice("1", pod("a", "10.0.0.1")), slice("2", pod("a", "10.0.0.1"))},
			[]string{"a@10.0.0.1:50051"},
		},
		"one pod in two slices, of which one is late": {
			[]*discovery.EndpointSlice{slice("1", down("a", "10.0.0.1"), ending("b", "10.0.0.2")), slice("2", pod("a", "10.0.0.1"), down("b", "10.0.0.2"))},
			[]string{"a@10.0.0.1:50051", "b@10.0.0.2:50051 draining"},
		},
		"dual stack": {
			[]*discovery.EndpointSlice{slice("4", pod("a", "10.0.0.1"), pod("b", "10.0.0.2")), ipv6(slice("6", pod("b", "2001:db8::2"), pod("a", "2001:db8::1")))},
			[]string{"a@[2001:db8::1]:50051,10.0.0.1:50051", "b@[2001:db8::2]:50051,10.0.0.2:50051"},
		},
		"dual stack, one family ready": {
			[]*discovery.EndpointSlice{slice("4", pod("a", "10.0.0.1")), ipv6(slice("6", down("a", "2001:db8::1")))},
			[]string{"a@10.0.0.1:50051"},
		},
		"endpoints without pods": {
			[]*discovery.EndpointSlice{slice("1", manual("10.0.0.1")), slice("2", manual("10.0.0.1"), manual("10.0.0.2"))},
			[]string{"@10.0.0.1:50051", "@10.0.0.2:50051"},
		},
		"only the first address has a meaning": {
			[]*discovery.EndpointSlice{slice("1", discovery.Endpoint{Addresses: []string{"10.0.0.1", "10.0.0.2"}})},
			[]string{"@10.0.0.1:50051"},
		},
		"a pod in the host's network replaces another": {
			[]*discovery.EndpointSlice{slice("1", pod("a", "10.0.0.1"), ending("b", "10.0.0.1"), ending("c", "10.0.0.2"), pod("d", "10.0.0.2"))},
			[]string{"a@10.0.0.1:50051", "d@10.0.0.2:50051"},
		},
		"a pod that is listed by hand, too": {
			[]*discovery.EndpointSlice{slice("1", manual("10.0.0.1")), slice("2", pod("a", "10.0.0.1"))},
			[]string{"a@10.0.0.1:50051"},
		},
		"names and nonsense among addresses": {
			[]*discovery.EndpointSlice{names(), slice("1", pod("a", "10.0.0.1"), manual("nonsense"), discovery.Endpoint{})},
			[]string{"a@10.0.0.1:50051"},
		},
	} {
		require.Equal(t, test.want, show(mergeOf(t, "k8s:///chat:grpc", test.slices...).endpoints), name)
	}
}

// A thousand endpoints in ten slices are a thousand endpoints, in whatever order slices
// have them.
func TestThousandEndpoints(t *testing.T) {
	var known, turned []*discovery.EndpointSlice
	for i := range 10 {
		s, back := slice(fmt.Sprint(i)), slice(fmt.Sprint(i))
		for j := range 100 {
			s.Endpoints = append(s.Endpoints, pod(fmt.Sprintf("%d-%d", i, j), fmt.Sprintf("10.0.%d.%d", i, j)))
			back.Endpoints = append([]discovery.Endpoint{s.Endpoints[j]}, back.Endpoints...)
		}
		known, turned = append(known, s), append([]*discovery.EndpointSlice{back}, turned...)
	}
	all := mergeOf(t, "k8s:///chat:grpc", known...).endpoints
	require.Len(t, all, 1000)
	require.Equal(t, all, mergeOf(t, "k8s:///chat:grpc", turned...).endpoints)
}

// The port is looked for in each slice by itself.
func TestPorts(t *testing.T) {
	udp := port("grpc", 50051)
	udp.Protocol = new(core.Protocol)
	*udp.Protocol = core.ProtocolUDP
	a := func() *discovery.EndpointSlice { return slice("1", pod("a", "10.0.0.1")) }
	for name, test := range map[string]struct {
		target string
		slice  *discovery.EndpointSlice
		want   string
	}{
		"by name":                 {":grpc", a(), "a@10.0.0.1:50051"},
		"by number":               {":9090", a(), "a@10.0.0.1:9090"},
		"the only one":            {"", ports(a(), port("", 7)), "a@10.0.0.1:7"},
		"the only one for TCP":    {"", ports(a(), udp, port("", 7)), "a@10.0.0.1:7"},
		"any":                     {":8", ports(a(), port("", 0)), "a@10.0.0.1:8"},
		"of a service without":    {":8", ports(a()), "a@10.0.0.1:8"},
		"several":                 {"", a(), `EndpointSlice 1: there are several ports, metrics (9090), grpc (50051): want one of them in the target`},
		"none":                    {"", ports(a()), `EndpointSlice 1: it has no TCP port with a number: want the number in the target`},
		"another name":            {":http", a(), `EndpointSlice 1: there is no TCP port http, but metrics (9090), grpc (50051)`},
		"another number":          {":8", a(), `EndpointSlice 1: there is no TCP port 8, but metrics (9090), grpc (50051)`},
		"another protocol":        {":grpc", ports(a(), udp), `EndpointSlice 1: there is no TCP port grpc, but none at all`},
		"a name of any number":    {":grpc", ports(a(), port("grpc", 0)), `EndpointSlice 1: port grpc may be any: want its number in the target`},
		"another name, to be any": {":grpc", ports(a(), port("x", 0)), `EndpointSlice 1: there is no TCP port grpc, but x (any number)`},
	} {
		s := mergeOf(t, "k8s:///chat"+test.target, test.slice)
		if s.ignored == nil {
			require.Equal(t, []string{test.want}, show(s.endpoints), name)
			continue
		}
		require.EqualError(t, s.ignored, test.want, name)
		require.Equal(t, s.empty.Error(), s.ignored.Error(), name)
		require.Empty(t, s.endpoints, name)
	}
	two := mergeOf(t, "k8s:///chat:grpc", a(), ports(slice("2", pod("b", "10.0.0.2")), port("grpc", 50052)))
	require.Equal(t, []string{"a@10.0.0.1:50051", "b@10.0.0.2:50052"}, show(two.endpoints))
	mixed := mergeOf(t, "k8s:///chat:50052", a(), ports(slice("2", pod("b", "10.0.0.2")), port("grpc", 50052)))
	require.Equal(t, []string{"b@10.0.0.2:50052"}, show(mixed.endpoints))
	require.ErrorContains(t, mixed.ignored, "EndpointSlice 1: there is no TCP port 50052")
}

// A zone has the endpoints first that are for it: by their hints, else by where
// they are. Without a zone all are equal.
func TestZones(t *testing.T) {
	s := slice("1", in("eu-1a", pod("a", "10.0.0.1")), in("eu-1b", pod("b", "10.0.0.2")), in("eu-1b", pod("c", "10.0.0.3"), "eu-1b", "eu-1a"),
		in("eu-1a", pod("d", "10.0.0.4"), "eu-1b"), pod("e", "10.0.0.5"))
	require.Equal(t, []string{
		"a@10.0.0.1:50051", "b@10.0.0.2:50051 priority 1", "c@10.0.0.3:50051", "d@10.0.0.4:50051 priority 1", "e@10.0.0.5:50051 priority 1",
	}, show(mergeOf(t, "k8s:///chat:grpc?zone=eu-1a", s).endpoints))
	moved := mergeOf(t, "k8s:///chat:grpc?zone=eu-1a", slice("1", in("eu-1a", pod("a", "10.0.0.1"))), slice("2", in("eu-1a", pod("a", "10.0.0.1"), "eu-1b")))
	require.Zero(t, moved.endpoints[0].priority, "one slice has it for the zone")
	for _, e := range mergeOf(t, "k8s:///chat:grpc", s).endpoints {
		require.Zero(t, e.priority)
	}
}

// Why there are no endpoints is said.
func TestEmptyServices(t *testing.T) {
	for want, known := range map[string][]*discovery.EndpointSlice{
		"it has no EndpointSlices: there is no such service":          nil,
		"none of its 2 endpoints is ready":                            {slice("1", down("a", "10.0.0.1"), conditions(pod("b", "10.0.0.2"), "-r -s t"))},
		"none of its 0 endpoints is ready":                            {slice("1")},
		`EndpointSlice names: addressType "FQDN": want IPv4 or IPv6`:  {names()},
		`EndpointSlice 1: addresses ["nonsense"]: want an IP address`: {slice("1", manual("nonsense"))},
	} {
		s := mergeOf(t, "k8s:///chat:grpc", known...)
		require.Empty(t, s.endpoints)
		require.ErrorContains(t, s.empty, want)
	}
}

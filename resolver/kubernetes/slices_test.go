package kubernetes

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leastconn/grpc-leastconn/resolver/kubernetes/internal/target"
)

// slice is an IPv4 slice of service chat in namespace shop, with port 50051 as
// grpc and another one.
func slice(name string, endpoints ...discovery.Endpoint) *discovery.EndpointSlice {
	return &discovery.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop",
			Labels: map[string]string{discovery.LabelServiceName: "chat"},
		},
		AddressType: discovery.AddressTypeIPv4,
		Endpoints:   endpoints,
		Ports:       []discovery.EndpointPort{port("metrics", 9090), port("grpc", 50051)},
	}
}

func port(name string, number int32) discovery.EndpointPort {
	p := discovery.EndpointPort{Name: &name}
	if number > 0 {
		p.Port = &number
	}
	return p
}

// ipv6 and ports change a slice.
func ipv6(s *discovery.EndpointSlice) *discovery.EndpointSlice {
	s.AddressType = discovery.AddressTypeIPv6
	return s
}

func ports(s *discovery.EndpointSlice, ports ...discovery.EndpointPort) *discovery.EndpointSlice {
	s.Ports = ports
	return s
}

// names is a slice of names.
func names() *discovery.EndpointSlice {
	s := slice("names", manual("chat.example.com"))
	s.AddressType = discovery.AddressTypeFQDN
	return s
}

// pod is a pod that is ready.
func pod(uid, ip string) discovery.Endpoint {
	e := manual(ip)
	e.TargetRef = &core.ObjectReference{Kind: "Pod", Name: "chat-" + uid, UID: types.UID(uid)}
	return conditions(e, "r-s-")
}

// manual is an endpoint that no pod stands behind, of unknown conditions.
func manual(ip string) discovery.Endpoint { return discovery.Endpoint{Addresses: []string{ip}} }

// conditions sets ready, serving and terminating: r, s and t, each with - before
// it if it is false.
func conditions(e discovery.Endpoint, set string) discovery.Endpoint {
	set = strings.NewReplacer("r-s-", "r s -t ").Replace(set)
	e.Conditions = discovery.EndpointConditions{}
	for word := range strings.FieldsSeq(set) {
		value := word[0] != '-'
		switch word[len(word)-1] {
		case 'r':
			e.Conditions.Ready = &value
		case 's':
			e.Conditions.Serving = &value
		case 't':
			e.Conditions.Terminating = &value
		}
	}
	return e
}

// ending is a pod that is terminating and serves, down one that is not ready.
func ending(uid, ip string) discovery.Endpoint { return conditions(pod(uid, ip), "-r s t") }
func down(uid, ip string) discovery.Endpoint   { return conditions(pod(uid, ip), "-r -s -t") }

// in puts an endpoint into a zone, with hints for others.
func in(zone string, e discovery.Endpoint, hints ...string) discovery.Endpoint {
	e.Zone = &zone
	for _, h := range hints {
		if e.Hints == nil {
			e.Hints = &discovery.EndpointHints{}
		}
		e.Hints.ForZones = append(e.Hints.ForZones, discovery.ForZone{Name: h})
	}
	return e
}

// show writes endpoints as words.
func show(es []endpoint) []string {
	var all []string
	for _, e := range es {
		s := e.uid + "@" + strings.Join(e.addresses, ",")
		if e.draining {
			s += " draining"
		}
		if e.priority > 0 {
			s += fmt.Sprint(" priority ", e.priority)
		}
		all = append(all, s)
	}
	return all
}

// mergeOf reads slices as a target does.
func mergeOf(t *testing.T, s string, known ...*discovery.EndpointSlice) service {
	t.Helper()
	parsed, err := target.Parse(targetOf(t, s).URL, target.Target{Namespace: "shop"})
	require.NoError(t, err)
	return merge(parsed, known)
}

func targetOf(t testing.TB, s string) resolver.Target {
	t.Helper()
	u, err := url.Parse(s)
	require.NoError(t, err)
	return resolver.Target{URL: *u}
}

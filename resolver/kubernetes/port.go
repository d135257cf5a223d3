package kubernetes

import (
	"fmt"
	"strings"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	"github.com/leastconn/grpc-leastconn/resolver/kubernetes/internal/target"
)

// portOf returns the port on which the endpoints of a slice are dialled. An
// error says which there are. Each slice has ports of its own: pods of one
// service may differ in what a name stands for.
func portOf(t target.Target, slice *discovery.EndpointSlice) (int32, error) {
	ports := tcpPorts(slice)
	for _, p := range ports {
		if t.Number == 0 && t.Port != "" && nameOf(p) == t.Port {
			if p.Port == nil {
				return 0, fmt.Errorf("port %s may be any: want its number in the target", t.Port)
			}
			return *p.Port, nil
		}
		// A port without a number stands for all.
		if t.Number != 0 && (p.Port == nil || *p.Port == t.Number) {
			return t.Number, nil
		}
	}
	switch {
	case t.Number != 0 && len(slice.Ports) == 0: // the service has none, and nothing is excluded
		return t.Number, nil
	case t.Port == "" && len(ports) == 1 && ports[0].Port != nil:
		return *ports[0].Port, nil
	case t.Port == "" && len(ports) > 1:
		return 0, fmt.Errorf("there are several ports, %s: want one of them in the target", describe(ports))
	case t.Port == "":
		return 0, fmt.Errorf("it has no TCP port with a number: want the number in the target")
	}
	return 0, fmt.Errorf("there is no TCP port %s, but %s", t.Port, describe(ports))
}

// tcpPorts leaves out the ports of other protocols.
func tcpPorts(slice *discovery.EndpointSlice) []discovery.EndpointPort {
	var ports []discovery.EndpointPort
	for _, p := range slice.Ports {
		if p.Protocol == nil || *p.Protocol == core.ProtocolTCP {
			ports = append(ports, p)
		}
	}
	return ports
}

func nameOf(p discovery.EndpointPort) string {
	if p.Name == nil {
		return ""
	}
	return *p.Name
}

// describe lists ports by name and number.
func describe(ports []discovery.EndpointPort) string {
	var all []string
	for _, p := range ports {
		switch {
		case p.Port == nil:
			all = append(all, nameOf(p)+" (any number)")
		case nameOf(p) == "":
			all = append(all, fmt.Sprint(*p.Port))
		default:
			all = append(all, fmt.Sprintf("%s (%d)", nameOf(p), *p.Port))
		}
	}
	if all == nil {
		return "none at all"
	}
	return strings.Join(all, ", ")
}

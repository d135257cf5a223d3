package trial

import (
	"fmt"

	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Host is one server.
type Host struct {
	Name     string // what it calls itself
	Endpoint resolver.Endpoint
	Node     *leastconntest.Node // nil if it runs in another process
}

// Hosts are nodes of this process.
func Hosts(nodes ...*leastconntest.Node) []Host {
	hosts := make([]Host, len(nodes))
	for i, n := range nodes {
		hosts[i] = Host{Name: n.Name(), Endpoint: n.Endpoint(), Node: n}
	}
	return hosts
}

// at returns the hosts at slots.
func (t *Trial) at(slots string) ([]Host, error) {
	hosts := make([]Host, len(slots))
	for i, slot := range []byte(slots) {
		if slot < 'a' || int(slot-'a') >= len(t.hosts) {
			return nil, fmt.Errorf("no host has the slot %q: there are %d", slot, len(t.hosts))
		}
		hosts[i] = t.hosts[slot-'a']
	}
	return hosts, nil
}

// own is at for hosts that this process can stop and tell what to do.
func (t *Trial) own(slots string) ([]Host, error) {
	hosts, err := t.at(slots)
	for _, h := range hosts {
		if h.Node == nil {
			return nil, fmt.Errorf("host %s is another process's", h.Name)
		}
	}
	return hosts, err
}

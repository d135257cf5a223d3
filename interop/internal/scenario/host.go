package scenario

import (
	"fmt"
	"slices"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Host is one server.
type Host = leastconntest.Node

// hostsAt returns the hosts at slots.
func (r *Run) hostsAt(slots string) ([]*Host, error) {
	hosts := make([]*Host, len(slots))
	for i, slot := range []byte(slots) {
		if slot < 'a' || int(slot-'a') >= len(r.hosts) {
			return nil, fmt.Errorf("no host has the slot %q: there are %d", slot, len(r.hosts))
		}
		hosts[i] = r.hosts[slot-'a']
	}
	return hosts, nil
}

// Load is how many sessions a host holds.
type Load struct {
	Host     string
	Sessions int
}

// Loads is the loads of hosts that are named like their slots, in that order.
func Loads(slots string, sessions ...int) []Load {
	loads := make([]Load, len(slots))
	for i, slot := range []byte(slots) {
		loads[i].Host = string(slot)
		if i < len(sessions) {
			loads[i].Sessions = sessions[i]
		}
	}
	return loads
}

// Counts is the sessions of each of loads.
func Counts(loads []Load) []int {
	counts := make([]int, len(loads))
	for i, l := range loads {
		counts[i] = l.Sessions
	}
	return counts
}

// Spread is the difference between the fullest and the emptiest of loads, 0 if there are none.
func Spread(loads []Load) int {
	if len(loads) == 0 {
		return 0
	}
	counts := Counts(loads)
	return slices.Max(counts) - slices.Min(counts)
}

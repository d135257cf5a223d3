package state_test

import (
	"fmt"

	"github.com/leastconn/grpc-leastconn/state"
)

// Two endpoints hold two long RPCs each when a third one joins: the next two go
// there.
func Example() {
	set := state.Open("chat").NewEndpointSet("dns:///chat")
	defer set.Close()
	ready := set.NewReadySet(0)
	join := func(addrs ...string) {
		endpoints := make([]state.Identity, len(addrs))
		for i, addr := range addrs {
			endpoints[i].Addrs = []string{addr}
		}
		for i, member := range set.Update(nil, endpoints) {
			ready.Set(member, 1, addrs[i])
		}
	}
	var leases []state.Lease
	open := func() string {
		lease, value, _ := ready.Acquire()
		leases = append(leases, lease)
		return value.(string)
	}

	join("10.0.0.1:443", "10.0.0.2:443")
	for range 4 {
		open()
	}
	join("10.0.0.3:443")
	fmt.Println("the next go to", open(), "and", open())
	for _, n := range set.Ledger().Snapshot().Endpoints {
		fmt.Println(n.Addresses[0], "has", n.InFlight)
	}
	for _, lease := range leases {
		lease.Release()
	}
	fmt.Println("given back again:", leases[0].Release())

	// Output:
	// the next go to 10.0.0.3:443 and 10.0.0.3:443
	// 10.0.0.1:443 has 2
	// 10.0.0.2:443 has 2
	// 10.0.0.3:443 has 2
	// given back again: false
}

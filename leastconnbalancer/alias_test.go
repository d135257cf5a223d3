package leastconnbalancer_test

import (
	"context"
	"net"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// aliases lets "name@address" reach address, so that a node has any number of
// addresses.
func aliases() grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		_, addr, _ = strings.Cut(addr, "@")
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	})
}

// under is the node as one endpoint with these aliases as addresses.
func under(n *leastconntest.Node, aliases ...string) resolver.Endpoint {
	var ep resolver.Endpoint
	for _, a := range aliases {
		ep.Addresses = append(ep.Addresses, resolver.Address{Addr: a + "@" + n.Addr()})
	}
	return ep
}

// nodeAt returns the ledger's node with exactly the endpoint's addresses.
func (c *channel) nodeAt(ep resolver.Endpoint) (state.EndpointSnapshot, bool) {
	c.lab.Helper()
	var want []string
	for _, a := range ep.Addresses {
		want = append(want, a.Addr)
	}
	slices.Sort(want)
	for _, n := range c.snapshot().Endpoints {
		if slices.Equal(n.Addresses, want) {
			return n, true
		}
	}
	return state.EndpointSnapshot{}, false
}

func (c *channel) readyAt(ep resolver.Endpoint) bool {
	c.lab.Helper()
	n, _ := c.nodeAt(ep)
	return slices.ContainsFunc(n.Members, func(m state.MemberSnapshot) bool { return m.Ready })
}

// inFlightAt returns the endpoint's count, -1 when the ledger does not know it.
func (c *channel) inFlightAt(ep resolver.Endpoint) int {
	c.lab.Helper()
	if n, ok := c.nodeAt(ep); ok {
		return int(n.InFlight)
	}
	return -1
}

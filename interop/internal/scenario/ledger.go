package scenario

import (
	"context"
	"fmt"
	"slices"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// compareLedgers notes where least_conn's own counts are not those of the sessions that are open, host by host. Other
// policies do not show theirs.
func (r *Run) compareLedgers() {
	if r.policy.Name != leastconnbalancer.Name {
		return
	}
	held := make(map[string]map[string]int) // sessions by ledger, then by host
	for _, c := range r.clients {
		held[c.ledgerKey()] = make(map[string]int)
	}
	for _, s := range r.sessions {
		held[s.client.ledgerKey()][s.Node()]++
	}
	for _, l := range state.Ledgers() {
		sessions, ours := held[l.Key()]
		if !ours {
			continue
		}
		if err := l.Check(); err != nil {
			r.outcome.Faults = append(r.outcome.Faults, err.Error())
		}
		nodes := l.Snapshot().Endpoints
		for _, h := range r.hosts {
			if counted := inFlightAt(nodes, h); counted != sessions[h.Name()] {
				r.outcome.Faults = append(r.outcome.Faults,
					fmt.Sprintf("least_conn counts %d sessions on %s, which holds %d", counted, h.Name(), sessions[h.Name()]))
			}
		}
	}
}

// waitPenalties waits until least_conn has forgotten that sessions broke. It weighs on a server for a second after their
// start, and those that a server loses when it stops are older, as a rule; those of a run are not.
func (r *Run) waitPenalties(ctx context.Context) error {
	return leastconntest.WaitFor(ctx, "the end of all penalties", func() bool {
		return !slices.ContainsFunc(state.Snapshots(), func(s state.Snapshot) bool {
			ours := slices.ContainsFunc(r.clients, func(c *Client) bool { return c.ledgerKey() == s.ResourceKey })
			return ours && slices.ContainsFunc(s.Endpoints, func(n state.EndpointSnapshot) bool { return n.Penalty > 0 })
		})
	})
}

// inFlightAt is what nodes have in flight at a host.
func inFlightAt(nodes []state.EndpointSnapshot, h *Host) int {
	at := slices.IndexFunc(nodes, func(n state.EndpointSnapshot) bool {
		return slices.Contains(n.Addresses, h.Addr())
	})
	if at < 0 {
		return 0
	}
	return int(nodes[at].InFlight)
}

// ledgerKey is the resource key of the ledger that has the client's load with least_conn.
func (c *Client) ledgerKey() string {
	if c.key != "" {
		return c.key
	}
	return c.channel.Conn().CanonicalTarget()
}

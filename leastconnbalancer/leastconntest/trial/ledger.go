package trial

import (
	"context"
	"fmt"
	"slices"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// checkLedgers notes where least_conn's own counts are not those of the sessions that are open, host by host. Other
// policies do not show theirs.
func (t *Trial) checkLedgers() {
	if t.policy.Name != leastconnbalancer.Name {
		return
	}
	held := make(map[string]map[string]int) // sessions by ledger, then by host
	for _, c := range t.clients {
		held[c.ledger()] = make(map[string]int)
	}
	for _, s := range t.sessions {
		held[s.client.ledger()][s.Node()]++
	}
	for _, l := range state.Ledgers() {
		sessions, ours := held[l.Key()]
		if !ours {
			continue
		}
		if err := l.Check(); err != nil {
			t.outcome.Faults = append(t.outcome.Faults, err.Error())
		}
		nodes := l.Snapshot().Endpoints
		for _, h := range t.hosts {
			if counted := counts(nodes, h); counted != sessions[h.Name] {
				t.outcome.Faults = append(t.outcome.Faults,
					fmt.Sprintf("least_conn counts %d sessions on %s, which holds %d", counted, h.Name, sessions[h.Name]))
			}
		}
	}
}

// forgiven waits until least_conn has forgotten that sessions broke. It weighs on a server for a second after their
// start, and those that a server loses when it stops are older, as a rule; a trial's are not.
func (t *Trial) forgiven(ctx context.Context) error {
	return leastconntest.WaitFor(ctx, "the end of all penalties", func() bool {
		return !slices.ContainsFunc(state.Snapshots(), func(s state.Snapshot) bool {
			ours := slices.ContainsFunc(t.clients, func(c *Client) bool { return c.ledger() == s.ResourceKey })
			return ours && slices.ContainsFunc(s.Endpoints, func(n state.EndpointSnapshot) bool { return n.Penalty > 0 })
		})
	})
}

// counts is what nodes have in flight at a host.
func counts(nodes []state.EndpointSnapshot, h Host) int {
	at := slices.IndexFunc(nodes, func(n state.EndpointSnapshot) bool {
		return slices.Contains(n.Addresses, h.Endpoint.Addresses[0].Addr)
	})
	if at < 0 {
		return 0
	}
	return int(nodes[at].InFlight)
}

// ledger is the resource key of the ledger that has the client's load with least_conn.
func (c *Client) ledger() string {
	if c.key != "" {
		return c.key
	}
	return c.channel.Conn().CanonicalTarget()
}

package integration

import (
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/stretchr/testify/require"

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer/orcaload"
)

// Under a control plane, streams move to a node that joins, and off one that is DRAINING,
// exactly as many as needed: which grpc takes for one that is not listed.
func TestStreamsMoveUnderEDS(t *testing.T) {
	config := map[string]any{"rebalance": map[string]any{"perSecond": 50, "minAge": "0s", "drainWithin": "1s"}}
	for service, policy := range map[string]*clusterpb.LoadBalancingPolicy{
		"alone":       leastConnPolicy(t, config),
		"by-locality": byLocality(t, leastConnPolicy(t, config)),
	} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			ns := startNodes(t, "a", "b", "c", "d")
			p := startControlPlane(t, service, policy)
			p.list(all(ns[1:]...))
			e := p.dial(all(ns...))
			e.waitReady(all(ns[1:]...)...)
			s := e.sessions(300)
			s.live(ns, 0, 100, 100, 100)

			p.list(all(ns...))
			s.live(ns, 75, 75, 75, 75)
			require.EqualValues(t, 75, s.told.Load(), "streams that were told to move: a has joined")

			p.list(all(ns[1:]...), ns[0])
			s.live(ns, 0, 100, 100, 100)
			require.EqualValues(t, 150, s.told.Load(), "streams that were told to move: a is draining")
		})
	}
}

// What servers report of the load of others decides below xDS, too: two clusters that share a node
// and no ledger, as two processes do.
func TestReportsBelowXDS(t *testing.T) {
	a, b := startReportingNode(t, "a"), startReportingNode(t, "b")
	policy := leastConnPolicy(t, map[string]any{"reports": map[string]any{"interval": "0.2s"}})
	dial := func(service string, servers ...server) *env {
		p := startControlPlane(t, service, policy)
		p.list(servers)
		e := p.dial(servers)
		e.waitReady(servers...)
		return e
	}
	dial("reports-other", a).hold(20, map[string]int{"a": 20})
	e := dial("reports", a, b)
	wait(t, "a has told what others have", func() bool { return e.endpoint(a).Report().Others == 20 && e.endpoint(b).Report().Told })
	e.hold(10, map[string]int{"b": 10})
	require.EqualValues(t, 0, e.endpoint(a).InFlight)
}

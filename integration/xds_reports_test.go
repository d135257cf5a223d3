package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer/orcaload"
)

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

package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) { statetest.Main(m) }

// withoutPenalty selects the policy without its penalty for fresh failures, for
// tests that look where streams go just after others have broken.
const withoutPenalty = `{"loadBalancingConfig":[{"least_conn":{"failurePenalty":"0s"}}]}`

// startNodes starts a node for each name, for as long as the test runs.
func startNodes(t *testing.T, names ...string) []*leastconntest.Node {
	t.Helper()
	ns, err := leastconntest.StartNodes(leastconntest.Options{}, names...)
	require.NoError(t, err)
	t.Cleanup(func() { leastconntest.CloseNodes(ns...) })
	return ns
}

// dial opens a channel to the nodes, for as long as the test runs.
func dial(t *testing.T, serviceConfig string, nodes ...*leastconntest.Node) *leastconntest.Channel {
	t.Helper()
	c, err := leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: serviceConfig,
		Endpoints:     leastconntest.Endpoints(nodes...),
	})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	c.Connect()
	return c
}

func wait(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(t, leastconntest.WaitFor(ctx, what, condition))
}

// node returns the entry of an address in the ledger of a channel.
func node(t *testing.T, c *leastconntest.Channel, addr string) (n state.EndpointSnapshot) {
	t.Helper()
	for _, l := range state.Ledgers() {
		if l.Key() != c.Conn().CanonicalTarget() {
			continue
		}
		require.NoError(t, l.Check())
		for _, n := range l.Snapshot().Endpoints {
			if n.Addresses[0] == addr {
				return n
			}
		}
	}
	return n
}

// ready reports whether the channel can send RPCs to the node.
func ready(t *testing.T, c *leastconntest.Channel, n *leastconntest.Node) bool {
	t.Helper()
	ms := node(t, c, n.Addr()).Members
	return len(ms) == 1 && ms[0].Ready
}

func waitReady(t *testing.T, c *leastconntest.Channel, nodes ...*leastconntest.Node) {
	t.Helper()
	for _, n := range nodes {
		wait(t, n.Name()+" is ready", func() bool { return ready(t, c, n) })
	}
}

func hold(t *testing.T, c *leastconntest.Channel, n int) map[string]int {
	t.Helper()
	streams, err := c.OpenN(t.Context(), n)
	require.NoError(t, err)
	return leastconntest.Counts(streams)
}

package leastconntest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// firstOf lists the policy, which this program has not linked, and one that every
// program has.
const firstOf = `{"loadBalancingConfig":[{"least_conn":{}},{"round_robin":{}}]}`

// A program that names the policy and forgets the import is told so at once.
func TestD91PolicyWithoutItsImport(t *testing.T) {
	require.Nil(t, balancer.Get("least_conn"), "this test binary must not link the policy")
	_, err := leastconntest.Dial(leastconntest.ChannelConfig{})
	require.ErrorContains(t, err, "least_conn")
}

// dialFirstOf has the resolver send the list of policies.
func dialFirstOf(t *testing.T, nodes ...*leastconntest.Node) *leastconntest.Channel {
	t.Helper()
	c, err := leastconntest.Dial(leastconntest.ChannelConfig{ServiceConfig: `{}`})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.UpdateConfig(firstOf, leastconntest.Endpoints(nodes...)...))
	return c
}

// In a list of policies the next one that is linked is used.
func TestD91ListOfPolicies(t *testing.T) {
	nodes := startNodes(t, leastconntest.Options{}, "a", "b")
	c := dialFirstOf(t, nodes...)
	require.NoError(t, c.WaitServed(t.Context(), nodes...))
	before := []int{nodes[0].Started(), nodes[1].Started()}
	for range 100 {
		_, err := c.Unary(t.Context())
		require.NoError(t, err)
	}
	assert.Equal(t, []int{50, 50}, []int{nodes[0].Started() - before[0], nodes[1].Started() - before[1]}, "as round_robin does")
}

// gRPC says once which policy it uses, not for every RPC.
func TestD91ListOfPoliciesIsLoggedOnce(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestD91ListOfPolicies$")
	cmd.Env = append(os.Environ(), "GRPC_GO_LOG_SEVERITY_LEVEL=info", "GRPC_GO_LOG_VERBOSITY_LEVEL=2")
	var logs strings.Builder
	cmd.Stderr = &logs
	require.NoError(t, cmd.Run(), logs.String())
	var switches []string
	for line := range strings.Lines(logs.String()) {
		if strings.Contains(line, "LB policy") {
			switches = append(switches, line)
		}
	}
	require.Len(t, switches, 1)
	assert.Contains(t, switches[0], `"round_robin"`)
}

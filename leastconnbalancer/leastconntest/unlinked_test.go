package leastconntest_test

import (
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
func TestPolicyWithoutItsImport(t *testing.T) {
	require.Nil(t, balancer.Get("least_conn"), "this test binary must not link the policy")
	_, err := leastconntest.Dial(leastconntest.ChannelConfig{})
	require.ErrorContains(t, err, "least_conn")
}

// In a list of policies the next one that is linked is used.
func TestListOfPolicies(t *testing.T) {
	nodes := startNodes(t, leastconntest.Options{}, "a", "b")
	c := dial(t)
	require.NoError(t, c.UpdateConfig(firstOf, leastconntest.Endpoints(nodes...)...))
	require.NoError(t, c.WaitServed(t.Context(), nodes...))
	before := []int{nodes[0].Started(), nodes[1].Started()}
	for range 100 {
		_, err := c.Unary(t.Context())
		require.NoError(t, err)
	}
	assert.Equal(t, []int{50, 50}, []int{nodes[0].Started() - before[0], nodes[1].Started() - before[1]}, "as round_robin does")
}

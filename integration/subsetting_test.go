package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	_ "google.golang.org/grpc/balancer/randomsubsetting"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

const underSubsetting = `{"loadBalancingConfig":[{"random_subsetting_experimental":{
	"subsetSize":3,"childPolicy":[{"least_conn":{}}]}}]}`

// TestD96RandomSubsetting: three of ten nodes get connections and equal shares;
// when the subset changes, those that stay keep their counts.
func TestD96RandomSubsetting(t *testing.T) {
	names := make([]string, 10)
	for i := range names {
		names[i] = fmt.Sprint("n", i)
	}
	ns := startNodes(t, names...)
	c := dial(t, underSubsetting, ns...)
	var in, out []*leastconntest.Node
	wait(t, "three nodes are ready", func() bool {
		in, out = nil, nil
		for _, n := range ns {
			if ready(t, c, n) {
				in = append(in, n)
			} else {
				out = append(out, n)
			}
		}
		return len(in) == 3
	})
	hold(t, c, 30)
	for _, n := range ns {
		connected := n.OpenConns() > 0
		require.Equal(t, node(t, c, n.Addr()).InFlight == 10, connected, n.Name())
	}
	for _, n := range in {
		require.Equal(t, 10, n.HeldStreams(), n.Name())
	}

	// Without one of the subset another one of the ten moves up.
	require.NoError(t, c.UpdateNodes(append(out[:len(out):len(out)], in[1:]...)...))
	var joined *leastconntest.Node
	wait(t, "another node is ready", func() bool {
		for _, n := range out {
			if ready(t, c, n) {
				joined = n
			}
		}
		return joined != nil
	})
	require.Equal(t, map[string]int{joined.Name(): 10}, hold(t, c, 10))
	for _, n := range in {
		require.EqualValues(t, 10, node(t, c, n.Addr()).InFlight, n.Name())
		require.Equal(t, 10, n.HeldStreams(), n.Name())
	}
	require.Equal(t, 3, len(hold(t, c, 3)), "the next three go to three nodes")
}

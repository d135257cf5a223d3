package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/xds" // registers outlier_detection_experimental

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Without the penalty, which gives a host that fails too little to be judged by.
const underOutlierDetection = `{"loadBalancingConfig":[{"outlier_detection_experimental":{
	"interval":"0.2s","baseEjectionTime":"0.5s","maxEjectionTime":"0.5s","maxEjectionPercent":50,
	"failurePercentageEjection":{"threshold":50,"enforcementPercentage":100,"minimumHosts":3,"requestVolume":5},
	"childPolicy":[{"least_conn":{"failurePenalty":"0s"}}]}}]}`

// TestD53OutlierDetection: a host that fails is ejected and gets nothing, its
// streams live on; once it is back its count is the one it had.
func TestD53OutlierDetection(t *testing.T) {
	ns := startNodes(t, "a", "b", "c")
	c := dial(t, underOutlierDetection, ns...)
	waitReady(t, c, ns...)
	require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2}, hold(t, c, 6))
	a := ns[0]

	a.SetFail(codes.Internal)
	wait(t, "a is ejected", func() bool {
		c.Unary(t.Context())
		return !ready(t, c, a)
	})
	require.EqualValues(t, 2, node(t, c, a.Addr()).InFlight)
	require.Equal(t, 2, a.HeldStreams())

	a.SetFail(codes.OK)
	before := a.Started()
	require.Equal(t, map[string]int{"b": 1, "c": 1}, hold(t, c, 2))
	require.Equal(t, before, a.Started(), "RPCs on the ejected host")

	waitReady(t, c, a)
	require.EqualValues(t, 2, node(t, c, a.Addr()).InFlight)
	require.Equal(t, map[string]int{"a": 1}, hold(t, c, 1))
	streams, err := c.OpenN(t.Context(), 3)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, leastconntest.Counts(streams))
	require.NoError(t, leastconntest.EndAll(streams))
	for _, n := range ns {
		require.EqualValues(t, 3, node(t, c, n.Addr()).InFlight, n.Name())
	}
}

package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// A single RPC that fails gets its host ejected, for longer than the test takes.
const underStrictDetection = `{"loadBalancingConfig":[{"outlier_detection_experimental":{
	"interval":"0.2s","baseEjectionTime":"300s","maxEjectionTime":"300s","maxEjectionPercent":100,
	"failurePercentageEjection":{"threshold":0,"enforcementPercentage":100,"minimumHosts":1,"requestVolume":1},
	"childPolicy":[{"least_conn":{"rebalance":{"drainWithin":"1s"}}}]}}]}`

// Streams that end by a half-close when they should move are no failures to outlier
// detection, nor to the policy.
func TestOutlierDetectionTakesNoOffenceAtMoves(t *testing.T) {
	ns := startNodes(t, "a", "b", "c")
	e := dial(t, leastconntest.ChannelConfig{ServiceConfig: underStrictDetection}, all(ns...)...)
	e.waitReady(all(ns...)...)
	s := e.sessions(300)
	s.live(ns, 100, 100, 100)
	require.NoError(t, e.channel.Update(ns[0].Endpoint(), ns[1].Endpoint(), lcresolver.SetWeight(ns[2].Endpoint(), 0)))
	s.live(ns, 150, 150, 0)
	require.EqualValues(t, 100, s.told.Load(), "streams that were told to move")
	for _, ep := range e.snapshot().Endpoints {
		require.Zero(t, ep.Penalty, "penalties of %v", ep.Addresses)
	}

	// It has judged these streams when it judges an RPC that fails after them.
	ns[0].SetFail(codes.Internal)
	wait(t, "a is ejected", func() bool {
		_, _ = e.unary()
		return !e.ready(ns[0])
	})
	require.True(t, e.ready(ns[1]), "b is not ejected")
	require.True(t, e.ready(ns[2]), "c is not ejected")
}

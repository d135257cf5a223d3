package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/serverload"
)

// startReportingNode starts a node that tells its clients its load.
func startReportingNode(t *testing.T, name string) *leastconntest.Node {
	t.Helper()
	load := serverload.New(serverload.Options{})
	n, err := leastconntest.StartNode(leastconntest.Options{
		Name: name, ServerOptions: []grpc.ServerOption{grpc.StatsHandler(load)},
		Register: func(s grpc.ServiceRegistrar) { require.NoError(t, load.Register(s)) },
	})
	require.NoError(t, err)
	t.Cleanup(n.Close)
	return n
}

package cluster_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/cluster"
)

// A program that asks for the cluster's name and forgets the import is told so at once.
func TestClusterWithoutItsImport(t *testing.T) {
	require.False(t, cluster.Linked())
	require.Empty(t, cluster.Name(resolver.State{Attributes: attributes.New("key", "value")}))
	parser := balancer.Get("least_conn").(balancer.ConfigParser)
	_, err := parser.ParseConfig(json.RawMessage(`{"resourceKey":"{target}/{cluster}"}`))
	require.EqualError(t, err, `least_conn: field resourceKey: value "{target}/{cluster}": want no {cluster} in a program without `+
		`import _ "github.com/leastconn/grpc-leastconn/leastconnbalancer/xdscluster"`)
	_, err = parser.ParseConfig(json.RawMessage(`{"resourceKey":"{target}"}`))
	require.NoError(t, err)
}

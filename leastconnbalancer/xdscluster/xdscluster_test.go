package xdscluster

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/cluster"
)

type key string

// The cluster's name is found whatever it is, and whatever else there is, and nothing else is.
func TestName(t *testing.T) {
	others := attributes.New(key("a"), "other").WithValue(key("b"), `quoted "x": "y"`).WithValue(key("c"), 3)
	for _, s := range []resolver.State{{}, {Attributes: others}, {Attributes: attributes.New(key("a"), "")}} {
		require.Empty(t, cluster.Name(s))
		for _, name := range []string{
			"blue", "other", "with space", `"`, `a": "b`, `\`, "\n\x00", "ü", "xdstp://a/b?c=d#e", "<%!p(int=3)>", "false\xff",
		} {
			named := weightedroundrobin.SetBackendService(s, name)
			require.Equal(t, name, cluster.Name(named))
			named.Attributes = named.Attributes.WithValue(key("later"), "later")
			require.Equal(t, name, cluster.Name(named))
			require.Equal(t, "second", cluster.Name(weightedroundrobin.SetBackendService(named, "second")))
		}
		require.Empty(t, cluster.Name(weightedroundrobin.SetBackendService(s, "")))
	}
}

// Attributes that cannot be compared leave the policy without a name.
func TestNameAmongWhatCannotBeCompared(t *testing.T) {
	s := resolver.State{Attributes: attributes.New(key("a"), []int{1})}
	require.Empty(t, cluster.Name(weightedroundrobin.SetBackendService(s, "blue")))
}

func TestLinked(t *testing.T) { require.True(t, cluster.Linked()) }

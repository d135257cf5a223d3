package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// docs/xds.md, followed by a new user: its program, built as it stands, finds by its bootstrap file
// the control plane that has its policy, and spreads its streams as it says.
func TestXDSDoc(t *testing.T) {
	t.Parallel()
	const doc = "../docs/xds.md"
	texts, jsons := docBlocks(t, doc, "text"), docBlocks(t, doc, "json")
	require.Len(t, texts, 2)
	require.Len(t, jsons, 2)
	program, ours, bootstrap, entry := texts[0], texts[1], jsons[0], jsons[1]

	source, err := os.ReadFile("xds_policy_test.go")
	require.NoError(t, err)
	require.Equal(t, string(source), "package integration\n\n"+ours)
	policy, err := leastConnCluster(leastconnbalancer.Config{ResourceKey: "{target}/{cluster}"})
	require.NoError(t, err)
	var shown clusterpb.LoadBalancingPolicy_Policy
	require.NoError(t, protojson.Unmarshal([]byte(entry), &shown))
	require.True(t, proto.Equal(&shown, policy.Policies[0]), "%v is not %v", &shown, policy.Policies[0])

	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	built := filepath.Join(dir, "client")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", built, write("main.go", program)).CombinedOutput()
	require.NoError(t, err, "%s", out)

	ns := startNodes(t, "a", "b", "c")
	p := startControlPlane(t, "chat", policy)
	p.serve(xdsCluster{name: "chat-stable", policy: policy, regions: map[string][]*endpointpb.LbEndpoint{"here": healthy(t, ns...)}})
	require.Contains(t, bootstrap, "127.0.0.1:18000")
	client := exec.CommandContext(t.Context(), built)
	client.Env = append(os.Environ(), "GRPC_XDS_BOOTSTRAP="+write("bootstrap.json", strings.ReplaceAll(bootstrap, "127.0.0.1:18000", p.addr)))
	out, err = client.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var want []string
	for _, n := range ns {
		want = append(want, "xds:///chat/chat-stable "+n.Addr()+" 2")
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.ElementsMatch(t, want, lines)
}

// A client that does not know a policy takes the next one.
func TestUnknownPolicyBelowXDS(t *testing.T) {
	policy, err := leastConnCluster(leastconnbalancer.Config{})
	require.NoError(t, err)
	unknown := strings.ReplaceAll(leastconnbalancer.Config{}.XDSPolicy(), "least_conn", "least_conn_of_tomorrow")
	require.NoError(t, protojson.Unmarshal([]byte(unknown), policy.Policies[0]))
	ns := startNodes(t, "a", "b")
	p := startControlPlane(t, "unknown-policy", policy)
	p.list(all(ns...))
	e := p.dial(all(ns...))
	for _, n := range ns {
		wait(t, n.Name()+" answers", func() bool { by, err := e.unary(); return err == nil && by == n.Name() })
	}
	var by []string
	for range 4 {
		n, err := e.unary()
		require.NoError(t, err)
		by = append(by, n)
	}
	require.True(t, slices.Equal(by[:2], by[2:]) && by[0] != by[1], "%v is not round robin", by)
	require.Empty(t, e.snapshot().Endpoints)
}

// docBlocks returns what the fenced blocks of a language in a document hold.
func docBlocks(t *testing.T, path, lang string) (blocks []string) {
	t.Helper()
	doc, err := os.ReadFile(path)
	require.NoError(t, err)
	for i, part := range strings.Split("\n"+string(doc), "\n```") {
		if i%2 == 0 {
			continue // outside of blocks
		}
		first, rest, _ := strings.Cut(part, "\n")
		if strings.TrimSpace(first) == lang {
			blocks = append(blocks, rest+"\n")
		}
	}
	return blocks
}

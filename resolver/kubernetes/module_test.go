package kubernetes_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// Outside of a cluster RPCs of the client that the document shows fail with a
// text that says so.
func TestDialOutsideOfACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	conn, err := dial("k8s:///chat.shop:grpc")
	require.NoError(t, err)
	defer conn.Close()
	_, err = grpc_testing.NewTestServiceClient(conn).UnaryCall(t.Context(), &grpc_testing.SimpleRequest{})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, "KUBERNETES_SERVICE_HOST")
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// The package links of Kubernetes what it needs and not all APIs that there are,
// and of this project what resolvers may.
func TestModuleLinks(t *testing.T) {
	const project = "github.com/leastconn/grpc-leastconn/"
	for _, dep := range goList(t, "-deps", ".") {
		require.False(t, strings.HasPrefix(dep, "k8s.io/client-go/kubernetes") || strings.HasPrefix(dep, "k8s.io/client-go/informers"), dep)
		if ours, found := strings.CutPrefix(dep, project); found {
			require.Contains(t, []string{"resolver", "resolver/kubernetes", "resolver/kubernetes/internal/target"}, ours)
		}
	}
}

// client-go's typed client is one that NewBuilder takes: its methods have the types
// that are asked for. To link it here would take longer than all tests.
func TestTypedClientFits(t *testing.T) {
	dir := filepath.Join(goList(t, "-m", "-f", "{{.Dir}}", "k8s.io/client-go")[0], "kubernetes/typed/discovery/v1")
	require.Equal(t, "func(namespace string) EndpointSliceInterface", method(t, filepath.Join(dir, "endpointslice.go"), "EndpointSlicesGetter", "EndpointSlices"))
	for name, want := range map[string]string{
		"List":  "func(ctx context.Context, opts metav1.ListOptions) (*discoveryv1.EndpointSliceList, error)",
		"Watch": "func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)",
	} {
		require.Equal(t, want, method(t, filepath.Join(dir, "endpointslice.go"), "EndpointSliceInterface", name))
		ours := strings.NewReplacer("discovery.", "discoveryv1.").Replace(method(t, "client.go", "EndpointSlices", name))
		require.Equal(t, want, ours)
	}
}

// method returns the type of a method of an interface, as a file has it.
func method(t *testing.T, file, of, name string) (found string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != of {
			return true
		}
		for _, m := range spec.Type.(*ast.InterfaceType).Methods.List {
			if len(m.Names) == 1 && m.Names[0].Name == name {
				found = types.ExprString(m.Type)
			}
		}
		return false
	})
	return found
}

package integration

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"
	"google.golang.org/grpc/interop/grpc_testing"
)

// TestPeersStandardCases: gRPC's interop cases pass with servers of each
// language alone and with all of them behind one channel. That counts are 0
// after each is what the client checks.
func TestPeersStandardCases(t *testing.T) {
	client := buildInteropClient(t)
	eachLanguage(t, func(t *testing.T, lang language) {
		p := startPeer(t, lang)
		standardCases(t, client, p.addr)
		wait(t, lang.name+" handles nothing", func() bool { return p.Live() == 0 })
	})
	t.Run("mixed", func(t *testing.T) {
		addrs := []string{startStandard(t)}
		for _, lang := range languages {
			addrs = append(addrs, startPeer(t, lang).addr)
		}
		standardCases(t, client, addrs...)
	})
}

// buildInteropClient builds interop/client and returns the path of the program.
func buildInteropClient(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "client")
	out, err := exec.Command("go", "build", "-C", "../interop", "-o", program, "./client").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// startStandard starts grpc-go's own server for as long as the test runs.
func startStandard(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer()
	grpc_testing.RegisterTestServiceServer(s, interop.NewTestServer())
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		<-served
	})
	return l.Addr().String()
}

// standardCases runs all cases that the client has against the servers.
func standardCases(t *testing.T, client string, addrs ...string) {
	t.Helper()
	out, err := exec.Command(client, "--server_host", strings.Join(addrs, ",")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

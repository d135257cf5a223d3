package integration

import (
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop"
	"google.golang.org/grpc/interop/grpc_testing"
)

// Whatever servers are, one that joins takes the next streams, exactly, until it
// is level; streams that end give their counts back; and one that leaves and
// returns is known again.
func TestSystemsScaleOut(t *testing.T) {
	servers := startAll(t)
	for first := range servers {
		scaleOut(t, slices.Concat(servers[first:], servers[:first]))
	}
}

func scaleOut(t *testing.T, servers []server) {
	everywhere := map[string]int{}
	for _, s := range servers {
		everywhere[s.Name()] = 1
	}
	a, b := servers[0], servers[1]
	e := dialReady(t, a, b)
	streams := e.hold(4, map[string]int{a.Name(): 2, b.Name(): 2})
	for i, s := range servers[2:] {
		e.list(servers[:i+3]...)
		streams = append(streams, e.hold(2, map[string]int{s.Name(): 2})...)
	}
	streams = append(streams, e.hold(len(servers), everywhere)...)
	e.counts(slices.Repeat([]int{3}, len(servers))...)
	e.alive(streams)

	for i, s := range servers {
		ending, others := on(s.Name(), streams)
		require.NoError(t, ending[0].End())
		ending[1].Cancel()
		endHeldOf(s, codes.Aborted)
		e.lost(ending[2:], codes.Aborted)
		want := slices.Repeat([]int{3}, len(servers))
		want[i] = 0
		e.counts(want...)
		streams = append(others, e.hold(3, map[string]int{s.Name(): 3})...)
	}

	e.list(servers[1:]...)
	delete(everywhere, a.Name())
	streams = append(streams, e.hold(len(servers)-1, everywhere)...)
	e.list(servers...)
	streams = append(streams, e.hold(1, map[string]int{a.Name(): 1})...)
	e.counts(slices.Repeat([]int{4}, len(servers))...)
	e.endAll(streams)
	e.counts(make([]int, len(servers))...)
}

// gRPC's interop cases pass with servers of each language alone, with all of
// them behind one channel, and through proxies. That counts are 0 after each is
// what the client checks.
func TestSystemsStandardCases(t *testing.T) {
	client := buildInteropClient(t)
	standard := startStandard(t)
	var addrs []string
	for _, k := range languages {
		p := k.start(t, settings{})
		standardCases(t, client, p.Addr())
		wait(t, k.name+" handles nothing", func() bool { return p.Live() == 0 })
		addrs = append(addrs, p.Addr())
	}
	standardCases(t, client, append(addrs, standard.Addr())...)
	// Deadlines are the client's alone: a node that keeps them, too, may be first to
	// end an RPC, and the proxy makes 502 of that.
	for _, k := range proxies {
		standardCases(t, client, startProxy(t, k, k.proxy.timeless, standard).Addr())
	}
}

// buildInteropClient builds interop/client and returns the path of the program.
func buildInteropClient(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "client")
	out, err := exec.Command("go", "build", "-C", "../interop", "-o", program, "./client").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// standardServer is grpc-go's own server, by its address.
type standardServer string

func (s standardServer) Addr() string { return string(s) }
func (s standardServer) Name() string { return "grpc-go" }
func (s standardServer) Live() int    { return 0 }

// startStandard starts grpc-go's own server for as long as the test runs.
func startStandard(t *testing.T) standardServer {
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
	return standardServer(l.Addr().String())
}

// standardCases runs all cases that the client has against the servers.
func standardCases(t *testing.T, client string, addrs ...string) {
	t.Helper()
	out, err := exec.Command(client, "--server_host", strings.Join(addrs, ","),
		// Cases are not here to measure the machine.
		"--soak_per_iteration_max_acceptable_latency_ms", "60000", "--soak_overall_timeout_seconds", "60", "--case_timeout_seconds", "60",
	).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

package integration

import (
	"net/http"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/naming/endpoints"
	etcdresolver "go.etcd.io/etcd/client/v3/naming/resolver"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// etcdSource is a service in a one-member cluster of etcd, whose addresses and
// data stay while it is stopped.
type etcdSource struct {
	*testing.T
	data    string
	clients string // the address for clients
	peers   string // the address for other members
	process *process

	client     *clientv3.Client
	service    endpoints.Manager
	registered []*leastconntest.Node
}

func newEtcdSource(t *testing.T) *etcdSource {
	t.Helper()
	s := &etcdSource{T: t, data: t.TempDir(), clients: reserveAddr(t), peers: reserveAddr(t)}
	s.start()
	var err error
	s.client, err = clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + s.clients}, DialTimeout: patience, Logger: zap.NewNop(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { s.client.Close() })
	s.service, err = endpoints.NewManager(s.client, "chat")
	require.NoError(t, err)
	return s
}

// start starts the server, which must not run, and waits until it serves.
func (s *etcdSource) start() {
	s.Helper()
	clients, peers := "http://"+s.clients, "http://"+s.peers
	c := exec.Command(lookup(s.T, "etcd", "apt-get install etcd-server, or put the program into PATH"), "--name", "test", "--data-dir", s.data,
		"--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "test="+peers,
		"--logger", "zap", "--log-level", "warn")
	c.Env = []string{"ETCD_UNSUPPORTED_ARCH=" + runtime.GOARCH} // and no other settings
	s.process = startProcess(s.T, c, syscall.SIGKILL)
	s.process.until("serve", func() bool {
		health, err := http.Get(clients + "/health")
		if err != nil {
			return false
		}
		health.Body.Close()
		return health.StatusCode == http.StatusOK
	})
}

// list registers nodes and deletes others, one after another.
func (s *etcdSource) list(nodes ...*leastconntest.Node) {
	s.Helper()
	for _, n := range nodes {
		if !slices.Contains(s.registered, n) {
			require.NoError(s, s.service.AddEndpoint(s.Context(), "chat/"+n.Name(), endpoints.Endpoint{Addr: n.Addr()}))
		}
	}
	for _, n := range s.registered {
		if !slices.Contains(nodes, n) {
			require.NoError(s, s.service.DeleteEndpoint(s.Context(), "chat/"+n.Name()))
		}
	}
	s.registered = slices.Clone(nodes)
}

// dial opens a channel to the service through etcd's own resolver.
func (s *etcdSource) dial(nodes ...*leastconntest.Node) *env {
	s.Helper()
	b, err := etcdresolver.NewBuilder(s.client)
	require.NoError(s, err)
	return dialTarget(s.T, "etcd:///chat", all(nodes...), grpc.WithResolvers(b))
}

// outage is the server's death, and its return.
func (s *etcdSource) outage(start func() *traffic) {
	tr := start()
	s.process.end(syscall.SIGKILL)
	tr.through("a", 50)
	s.start()
	tr.through("a", 50)
	require.Empty(s, tr.end())
}

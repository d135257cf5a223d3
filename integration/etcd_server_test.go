package integration

import (
	"bytes"
	"net/http"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdServer is a one-member cluster on loopback. Its addresses and its data
// stay while it is stopped.
type etcdServer struct {
	t       *testing.T
	program string
	data    string
	clients string // the address for clients
	peers   string // the address for other members

	// Of the process that runs now or ran last.
	process *exec.Cmd
	exited  chan struct{} // closed when it has ended; then output may be read
	output  *bytes.Buffer
}

// startEtcd starts a server for as long as the test runs.
func startEtcd(t *testing.T) *etcdServer {
	t.Helper()
	program, err := exec.LookPath("etcd")
	require.NoError(t, err, "this test needs the etcd server: apt-get install etcd-server, or put the etcd program into PATH")
	e := &etcdServer{t: t, program: program, data: t.TempDir(), clients: reserveAddr(t), peers: reserveAddr(t)}
	t.Cleanup(e.stop)
	e.start()
	return e
}

// reserveAddr returns an address of loopback that nobody else gets while the
// test runs: that of a node that is stopped.
func reserveAddr(t *testing.T) string {
	t.Helper()
	n := startNodes(t, "")[0]
	n.Stop()
	return n.Addr()
}

// start starts the server, which must not run, and waits until it serves.
func (e *etcdServer) start() {
	e.t.Helper()
	clients, peers := "http://"+e.clients, "http://"+e.peers
	e.output, e.exited = new(bytes.Buffer), make(chan struct{})
	e.process = exec.Command(e.program, "--name", "test", "--data-dir", e.data,
		"--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "test="+peers,
		"--logger", "zap", "--log-level", "warn")
	e.process.Env = []string{"ETCD_UNSUPPORTED_ARCH=" + runtime.GOARCH} // and no other settings
	e.process.Stdout, e.process.Stderr = e.output, e.output
	require.NoError(e.t, e.process.Start())
	go func() {
		e.process.Wait()
		close(e.exited)
	}()
	wait(e.t, "etcd serves", func() bool {
		select {
		case <-e.exited:
			require.FailNow(e.t, "etcd has ended", e.output.String())
		default:
		}
		health, err := http.Get(clients + "/health")
		if err != nil {
			return false
		}
		health.Body.Close()
		return health.StatusCode == http.StatusOK
	})
}

// stop kills the server, if it runs.
func (e *etcdServer) stop() {
	if e.process == nil || e.process.Process == nil {
		return
	}
	e.process.Process.Kill()
	<-e.exited
	if e.t.Failed() {
		e.t.Log("etcd said:", e.output)
	}
}

// client returns a client of the server for as long as the test runs.
func (e *etcdServer) client() *clientv3.Client {
	e.t.Helper()
	c, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{"http://" + e.clients},
		DialTimeout: 20 * time.Second,
		Logger:      zap.NewNop(),
	})
	require.NoError(e.t, err)
	e.t.Cleanup(func() { c.Close() })
	return c
}

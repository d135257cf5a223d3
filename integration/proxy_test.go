package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// proxyKind is a program that can stand in front of nodes.
type proxyKind struct {
	args       func(*proxy) []string
	config     *template.Template
	reload     syscall.Signal    // read the configuration again; the old worker drains
	drain      syscall.Signal    // take no more connections, and end with the last stream
	ready      func(*proxy) bool // its signals work
	masterEnds bool              // when its worker is killed

	limit    func(streams int) settings // for each connection
	idle     settings                   // connections without streams are closed after 200 ms
	timeless settings                   // nodes are not told of deadlines
}

// proxy is a reverse proxy: a master, and a worker that serves. Its addresses
// and its configuration stay while it is stopped.
type proxy struct {
	*testing.T
	kind     kind
	settings settings
	nodes    []server // that it stands in front of
	dir      string

	addr    string // for clients
	admin   string // answers HTTP/1 requests with the id of the worker's process
	control string // takes commands, if the program does

	process *process // that runs now or ran last
}

func startProxy(t *testing.T, k kind, s settings, nodes ...server) *proxy {
	t.Helper()
	p := &proxy{
		T: t, kind: k, settings: s, nodes: nodes, dir: t.TempDir(),
		addr: reserveAddr(t), admin: reserveAddr(t), control: reserveAddr(t),
	}
	p.restart()
	return p
}

// restart starts the proxy, which must not run, and waits until it serves.
func (p *proxy) restart() {
	p.Helper()
	p.configure()
	program := lookup(p.T, p.kind.name, "apt-get install "+p.kind.name+", or put the program into PATH")
	p.process = startProcess(p.T, exec.Command(program, p.kind.proxy.args(p)...), syscall.SIGTERM)
	p.process.until("serve", func() bool {
		_, err := p.tryWorker()
		return err == nil && p.kind.proxy.ready(p)
	})
}

// configure writes the configuration, which a running proxy reads when it is
// told to reload.
func (p *proxy) configure() {
	p.Helper()
	var config bytes.Buffer
	require.NoError(p, p.kind.proxy.config.Execute(&config, map[string]any{
		"Root": os.Geteuid() == 0, "Settings": p.settings, "Nodes": p.nodes, "Addr": p.addr, "Admin": p.admin,
	}))
	require.NoError(p, os.WriteFile(p.file(), config.Bytes(), 0o600))
}

func (p *proxy) file() string { return filepath.Join(p.dir, "config") }

func (p *proxy) Addr() string { return p.addr }
func (p *proxy) Name() string { return p.kind.name }

func (p *proxy) Live() (n int) {
	for _, node := range p.nodes {
		n += node.Live()
	}
	return n
}

// node is the only one behind the proxy.
func (p *proxy) node() *leastconntest.Node { return p.nodes[0].(*leastconntest.Node) }

func (p *proxy) holdUnary() { p.node().HoldUnary(true) }

// endHeld ends unary RPCs with OK: a node cannot fail them.
func (p *proxy) endHeld(code codes.Code) {
	p.node().HoldUnary(false)
	if code == codes.OK {
		p.node().EndStreams()
	} else {
		p.node().FailStreams(code)
	}
}

func (p *proxy) drain() {
	p.Helper()
	p.process.signal(p.kind.proxy.drain)
}

func (p *proxy) waitDrained() { p.process.waitEnded() }

// crash kills the worker.
func (p *proxy) crash() {
	p.Helper()
	p.signalWorker(syscall.SIGKILL)
	if p.kind.proxy.masterEnds {
		p.process.waitEnded()
	}
}

// reload has a new worker take over, waits until the old one drains and returns
// the old one's process id.
func (p *proxy) reload() (old int) {
	p.Helper()
	old, idle, err := p.visit()
	require.NoError(p, err)
	defer idle.Close()
	p.configure()
	p.process.signal(p.kind.proxy.reload)
	_, err = io.Copy(io.Discard, idle) // a worker that drains closes its idle connections after its ports
	require.NoError(p, err, "the old worker of %s does not drain", p.kind.name)
	require.NotEqual(p, old, p.worker())
	return old
}

// worker returns the id of the process that accepts connections.
func (p *proxy) worker() (pid int) {
	p.Helper()
	wait(p.T, "a worker of "+p.kind.name, func() (ok bool) {
		var err error
		pid, err = p.tryWorker()
		return err == nil
	})
	return pid
}

func (p *proxy) tryWorker() (pid int, err error) {
	pid, conn, err := p.visit()
	if err == nil {
		conn.Close()
	}
	return pid, err
}

// visit asks a worker for its process id, over a connection that is open then.
func (p *proxy) visit() (pid int, conn net.Conn, err error) {
	conn, err = net.Dial("tcp", p.admin)
	if err != nil {
		return 0, nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: admin\r\n\r\n"); err != nil {
		return 0, nil, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, err
	}
	_, err = fmt.Fscan(answer.Body, &pid)
	return pid, conn, err
}

// signalWorker tells the worker something.
func (p *proxy) signalWorker(s syscall.Signal) {
	p.Helper()
	require.NoError(p, syscall.Kill(p.worker(), s))
}

// waitGone waits until a former worker has ended, as it does with its last
// stream.
func (p *proxy) waitGone(pid int) {
	p.Helper()
	wait(p.T, "the old worker of "+p.kind.name+" has ended", func() bool {
		return syscall.Kill(pid, 0) == syscall.ESRCH
	})
}

// waitServing waits until RPCs go to the process that serves now. No server may
// have fewer RPCs in flight than the system.
func (e *env) waitServing(s system) {
	e.Helper()
	e.waitReady(s)
	p, ok := s.(*proxy)
	if !ok {
		return
	}
	pid := strconv.Itoa(p.worker())
	wait(e.T, "an answer from worker "+pid, func() bool {
		var header metadata.MD
		_, err := grpc_testing.NewTestServiceClient(e.conn).UnaryCall(e.Context(), &grpc_testing.SimpleRequest{}, grpc.Header(&header))
		by := header.Get("worker")
		return err == nil && len(by) == 1 && by[0] == pid
	})
}

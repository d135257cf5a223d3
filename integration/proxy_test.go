package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
)

// proxyKind is a program that can stand in front of nodes.
type proxyKind struct {
	program string // and the Debian package that has it
	args    func(*proxy) []string
	config  *template.Template
	reload  syscall.Signal    // read the configuration again; the old worker drains
	drain   syscall.Signal    // take no more connections, and end with the last stream
	ready   func(*proxy) bool // its signals work

	limit    func(streams int) settings // for each connection
	idle     settings                   // connections without streams are closed after 200 ms
	timeless settings                   // nodes are not told of deadlines
}

var proxyKinds = []proxyKind{nginx, haproxy}

// eachProxy runs a test once for each kind of proxy.
func eachProxy(t *testing.T, test func(*testing.T, proxyKind)) {
	for _, k := range proxyKinds {
		t.Run(k.program, func(t *testing.T) { test(t, k) })
	}
}

// proxyPatience is how long a proxy may take to do something.
const proxyPatience = 20 * time.Second

// settings are directives of a proxy's configuration: of the process, of HTTP,
// and of the port for clients.
type settings struct{ Global, HTTP, Clients string }

// proxy is a reverse proxy in a process of its own: a master, and a worker that
// serves. Its addresses and its configuration stay while it is stopped.
type proxy struct {
	t        *testing.T
	kind     proxyKind
	settings settings
	nodes    []server // that it stands in front of
	dir      string

	addr    string // for clients
	admin   string // answers HTTP/1 requests with the id of the worker's process
	control string // takes commands, if the program does

	// Of the process that runs now or ran last.
	process *exec.Cmd
	exited  chan struct{} // closed when it has ended; then output may be read
	output  *bytes.Buffer
}

// startProxy starts a proxy in front of nodes for as long as the test runs.
func startProxy(t *testing.T, kind proxyKind, s settings, nodes ...server) *proxy {
	t.Helper()
	p := &proxy{
		t: t, kind: kind, settings: s, nodes: nodes, dir: t.TempDir(),
		addr: reserveAddr(t), admin: reserveAddr(t), control: reserveAddr(t),
	}
	t.Cleanup(p.stop)
	p.start()
	return p
}

// start starts the proxy, which must not run, and waits until it serves.
func (p *proxy) start() {
	p.t.Helper()
	program, err := exec.LookPath(p.kind.program)
	require.NoError(p.t, err, "this test needs %s: apt-get install %[1]s, or put the %[1]s program into PATH", p.kind.program)
	p.configure()
	p.output, p.exited = new(bytes.Buffer), make(chan struct{})
	p.process = exec.Command(program, p.kind.args(p)...)
	p.process.Stdout, p.process.Stderr = p.output, p.output
	require.NoError(p.t, p.process.Start())
	process, exited := p.process, p.exited
	guard, err := startGuard(process.Process.Pid)
	go func() {
		process.Wait()
		if guard != nil {
			guard.Process.Kill()
			guard.Wait()
		}
		close(exited)
	}()
	require.NoError(p.t, err)
	wait(p.t, p.kind.program+" serves", func() bool {
		select {
		case <-p.exited:
			require.FailNow(p.t, p.kind.program+" has ended", p.output.String())
		default:
		}
		_, err := p.tryWorker()
		return err == nil && p.kind.ready(p)
	})
}

// startGuard starts a process that ends the proxy if the test binary ends before
// it, as it does when its time is over.
func startGuard(pid int) (*exec.Cmd, error) {
	guard := exec.Command("sh", "-c", `cat; kill -TERM "$0"`, strconv.Itoa(pid))
	// Nothing is ever written to it, and it is closed with the test binary.
	if _, err := guard.StdinPipe(); err != nil {
		return nil, err
	}
	if err := guard.Start(); err != nil {
		return nil, err
	}
	return guard, nil
}

func (p *proxy) Addr() string { return p.addr }
func (p *proxy) Name() string { return p.kind.program }

// Live is how many RPCs the nodes behind the proxy handle now.
func (p *proxy) Live() (n int) {
	for _, node := range p.nodes {
		n += node.Live()
	}
	return n
}

// configure writes the configuration, which a running proxy reads when it is
// told to reload.
func (p *proxy) configure() {
	p.t.Helper()
	var config bytes.Buffer
	require.NoError(p.t, p.kind.config.Execute(&config, map[string]any{
		"Root": os.Geteuid() == 0, "Settings": p.settings, "Nodes": p.nodes, "Addr": p.addr, "Admin": p.admin,
	}))
	require.NoError(p.t, os.WriteFile(p.file(), config.Bytes(), 0o600))
}

func (p *proxy) file() string { return filepath.Join(p.dir, "config") }

// signal tells the master something.
func (p *proxy) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.process.Process.Signal(s))
}

// end ends the proxy at once, with the streams that it carries.
func (p *proxy) end() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	p.waitEnded()
}

// waitEnded waits until the proxy has ended.
func (p *proxy) waitEnded() {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(proxyPatience):
		require.FailNow(p.t, p.kind.program+" does not end")
	}
}

// stop ends the proxy with the test.
func (p *proxy) stop() {
	if p.process == nil || p.process.Process == nil {
		return
	}
	p.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(proxyPatience):
		p.t.Errorf("%s does not end; it is killed, and may leave a worker behind", p.kind.program)
		p.process.Process.Kill()
		<-p.exited
	}
	if p.t.Failed() {
		p.t.Logf("%s said:\n%s", p.kind.program, p.output)
	}
}

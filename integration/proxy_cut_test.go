package integration

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// cut is a way in which a proxy ends streams that neither side wanted to end.
type cut struct {
	name     string
	kind     proxyKind
	settings settings
	do       step // nil: it happens by itself
	codes    []codes.Code
	undo     step // what it takes to serve again
}

// The connection breaks.
var broken = []codes.Code{codes.Unavailable}

// The stream is reset, or ends without a status.
var reset = []codes.Code{codes.Internal}

// A worker that is out of time resets streams and closes connections, and
// either may be seen first.
var either = append(broken, reset...)

// step does something to a proxy, or to the node behind it.
type step func(*testing.T, *proxy, *leastconntest.Node)

func reload(_ *testing.T, p *proxy, _ *leastconntest.Node)      { p.reload() }
func end(_ *testing.T, p *proxy, _ *leastconntest.Node)         { p.end() }
func restart(_ *testing.T, p *proxy, _ *leastconntest.Node)     { p.start() }
func stopNode(_ *testing.T, _ *proxy, n *leastconntest.Node)    { n.Stop() }
func restartNode(t *testing.T, _ *proxy, n *leastconntest.Node) { require.NoError(t, n.Restart()) }

func signalled(s syscall.Signal) step {
	return func(_ *testing.T, p *proxy, _ *leastconntest.Node) { p.signalWorker(s) }
}

// ordered has HAProxy's worker do something.
func ordered(command string) step {
	return func(_ *testing.T, p *proxy, _ *leastconntest.Node) { p.command(command) }
}

// killed kills HAProxy's worker, with which the master ends.
func killed(_ *testing.T, p *proxy, _ *leastconntest.Node) {
	p.signalWorker(syscall.SIGKILL)
	p.waitEnded()
}

var cuts = []cut{
	{name: "out of time to drain", kind: nginx, settings: settings{Global: "worker_shutdown_timeout 100ms;"}, do: reload, codes: broken},
	{name: "worker terminated", kind: nginx, do: signalled(syscall.SIGTERM), codes: broken},
	{name: "worker killed", kind: nginx, do: signalled(syscall.SIGKILL), codes: broken},
	{name: "terminated", kind: nginx, do: end, codes: broken, undo: restart},
	{name: "upstream read timeout", kind: nginx, settings: settings{HTTP: "grpc_read_timeout 2s;"}, codes: reset},
	{name: "client body timeout", kind: nginx, settings: settings{HTTP: "client_body_timeout 2s;"}, codes: reset},
	{name: "node stopped", kind: nginx, do: stopNode, codes: reset, undo: restartNode},

	{name: "out of time to drain", kind: haproxy, settings: settings{Global: "hard-stop-after 100ms"}, do: reload, codes: either},
	{name: "worker killed", kind: haproxy, do: killed, codes: broken, undo: restart},
	{name: "terminated", kind: haproxy, do: end, codes: broken, undo: restart},
	{name: "server timeout", kind: haproxy, settings: settings{HTTP: "timeout server 2s"}, codes: reset},
	{name: "sessions shut down", kind: haproxy, do: ordered("shutdown sessions server nodes/node0"), codes: reset},
	{name: "node stopped", kind: haproxy, do: stopNode, codes: reset, undo: restartNode},
}

// However a proxy ends streams, their counts come back, those of other
// endpoints stay, and the next streams make up the difference.
func TestProxyCutsStreams(t *testing.T) {
	for _, c := range cuts {
		t.Run(c.kind.program+"/"+c.name, c.run)
	}
}

func (c cut) run(t *testing.T) {
	near, far := startNodes(t, "near")[0], startNodes(t, "far")[0]
	p := startProxy(t, c.kind, c.settings, far)
	m := dialMix(t, near, p)
	lost, kept := on("far", m.hold(6, map[string]int{"near": 3, "far": 3}))

	if c.do != nil {
		c.do(t, p, far)
	}
	m.lost(lost, c.codes...)
	m.counts(3, 0)
	m.alive(kept)

	if c.undo != nil {
		c.undo(t, p, far)
	}
	m.waitWorker(p.worker())
	m.counts(3, 0)
	again := m.hold(3, map[string]int{"far": 3})
	m.inFlight(3, 3)
	leastconntest.CancelAll(again)
	m.endAll(kept)
	m.counts(0, 0)
}

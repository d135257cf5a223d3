package integration

import (
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// cut is a way in which a system ends streams that nobody wanted to end.
type cut struct {
	name     string
	kind     kind
	settings settings
	do       func(system) // nil: it happens by itself
	codes    []codes.Code
	undo     func(system) // what it takes to serve again
}

// The connection breaks.
var broken = []codes.Code{codes.Unavailable}

// The stream is reset, or ends without a status.
var reset = []codes.Code{codes.Internal}

// Who is out of time resets streams and closes connections, and either may be
// seen first.
var either = slices.Concat(broken, reset)

func reload(s system)      { s.(*proxy).reload() }
func terminate(s system)   { s.(*proxy).process.end(syscall.SIGTERM) }
func endWorker(s system)   { s.(*proxy).signalWorker(syscall.SIGTERM) }
func stopNode(s system)    { s.(*proxy).node().Stop() }
func restartNode(s system) { require.NoError(s.(*proxy), s.(*proxy).node().Restart()) }

// ordered has HAProxy's worker do something.
func ordered(command string) func(system) {
	return func(s system) { s.(*proxy).command(command) }
}

var outOfGrace = settings{Flags: []string{"--max-age-ms", "2000", "--max-age-grace-ms", "200"}}

var cuts = []cut{
	{name: "killed", kind: python, do: system.crash, codes: broken, undo: system.restart},
	{name: "killed", kind: cpp, do: system.crash, codes: broken, undo: system.restart},
	{name: "killed", kind: node, do: system.crash, codes: broken, undo: system.restart},
	{name: "out of grace", kind: python, settings: outOfGrace},
	{name: "out of grace", kind: cpp, settings: outOfGrace},
	{name: "out of grace", kind: node, settings: outOfGrace},

	{name: "out of time to drain", kind: nginx, settings: settings{Global: "worker_shutdown_timeout 100ms;"}, do: reload, codes: broken},
	{name: "worker terminated", kind: nginx, do: endWorker, codes: broken},
	{name: "worker killed", kind: nginx, do: system.crash, codes: broken},
	{name: "terminated", kind: nginx, do: terminate, codes: broken, undo: system.restart},
	{name: "upstream read timeout", kind: nginx, settings: settings{HTTP: "grpc_read_timeout 2s;"}, codes: reset},
	{name: "client body timeout", kind: nginx, settings: settings{HTTP: "client_body_timeout 2s;"}, codes: reset},
	{name: "node stopped", kind: nginx, do: stopNode, codes: reset, undo: restartNode},

	{name: "out of time to drain", kind: haproxy, settings: settings{Global: "hard-stop-after 100ms"}, do: reload, codes: either},
	{name: "worker killed", kind: haproxy, do: system.crash, codes: broken, undo: system.restart},
	{name: "terminated", kind: haproxy, do: terminate, codes: broken, undo: system.restart},
	{name: "server timeout", kind: haproxy, settings: settings{HTTP: "timeout server 2s"}, codes: reset},
	{name: "sessions shut down", kind: haproxy, do: ordered("shutdown sessions server nodes/node0"), codes: reset},
	{name: "node stopped", kind: haproxy, do: stopNode, codes: reset, undo: restartNode},
}

// However a system cuts streams, their counts come back, those of other
// endpoints stay, and the next streams make up the difference.
func TestSystemsCutStreams(t *testing.T) {
	for _, c := range cuts {
		t.Run(c.kind.name+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			s := c.kind.start(t, c.settings)
			e := dialReady(t, startNodes(t, "near")[0], s)
			cut, kept := on(c.kind.name, e.hold(6, map[string]int{"near": 3, c.kind.name: 3}))
			if c.do != nil {
				c.do(s)
			}
			if c.codes != nil {
				e.lost(cut, c.codes...)
			} else { // the code depends on whether streams are reset before their connection is closed
				for _, stream := range cut {
					require.Error(t, stream.Wait())
				}
			}
			e.counts(3, 0)
			e.alive(kept)

			if c.undo != nil {
				c.undo(s)
			}
			e.waitServing(s)
			e.inFlight(3, 0)
			again := e.hold(3, map[string]int{c.kind.name: 3})
			e.inFlight(3, 3)
			leastconntest.CancelAll(again)
			e.endAll(kept)
			e.counts(0, 0)
		})
	}
}

// replacement is a way in which a connection is replaced by another one and
// keeps its streams.
type replacement struct {
	name     string
	kind     kind
	settings settings
	do       func(*proxy) (old int) // nil: it happens by itself
}

var ageing = settings{Flags: []string{"--max-age-ms", "300"}}

var replacements = []replacement{
	{name: "aged", kind: python, settings: ageing},
	{name: "aged", kind: cpp, settings: ageing},
	{name: "aged", kind: node, settings: ageing},
	{name: "used up", kind: nginx, settings: settings{HTTP: "keepalive_requests 4;"}},
	{name: "reloaded", kind: nginx, do: (*proxy).reload},
	{name: "reloaded", kind: haproxy, do: (*proxy).reload},
}

// Streams on a connection that has had its GOAWAY live on and count on, beside
// those on the next one.
func TestSystemsReplaceConnections(t *testing.T) {
	for _, r := range replacements {
		t.Run(r.kind.name+"/"+r.name, func(t *testing.T) {
			t.Parallel()
			s, near := r.kind.start(t, r.settings), startNodes(t, "near")[0]
			e := dialReady(t, s)
			first := e.hold(6, map[string]int{r.kind.name: 6})
			e.counts(6)
			old := 0
			if r.do != nil {
				old = r.do(s.(*proxy))
			}
			wait(t, "the next connection", func() bool {
				begun, open := e.conns.of(s)
				return begun > 1 && open > 1 && e.ready(s)
			})
			e.list(s, near)
			e.inFlight(6, 0)
			others := e.hold(6, map[string]int{"near": 6})
			e.alive(first)
			e.counts(6, 6)

			e.list(s)
			later := e.hold(2, map[string]int{r.kind.name: 2})
			e.alive(first)
			e.counts(8, 6)
			e.endAll(first)
			if old != 0 {
				s.(*proxy).waitGone(old)
				e.connected(s, 1)
			}
			e.counts(2, 6)
			e.endAll(later, others)
			e.counts(0, 0)
		})
	}
}

// A system that drains keeps its streams and ends with the last of them. Others
// get what comes, and what takes its place catches up. A server of another
// language may do so at once; then the streams of both are counted together.
func TestSystemsDrain(t *testing.T) {
	each(t, kinds, func(t *testing.T, k kind) {
		s := k.start(t, settings{})
		e := dialReady(t, startNodes(t, "near")[0], s)
		far, near := on(k.name, e.hold(6, map[string]int{"near": 3, k.name: 3}))
		s.drain()
		e.waitNotReady(s)
		near = append(near, e.hold(2, map[string]int{"near": 2})...)
		e.inFlight(5, 3)
		e.alive(far)

		next, taken := s, 0
		if k.language != nil {
			next, taken = startPeer(t, k, s.Addr()), 1
			e.waitReady(next)
			e.inFlight(5, 3)
			near = append(near, e.hold(1, map[string]int{k.name: 1})...)
			e.inFlight(5, 4)
		}
		e.endAll(far)
		s.waitDrained()
		e.inFlight(5, taken)
		if next == s {
			s.restart()
		}
		e.servers[1] = next
		e.waitServing(next)
		near = append(near, e.hold(5-taken, map[string]int{k.name: 5 - taken})...)
		e.counts(5, 5)
		e.endAll(near)
		e.counts(0, 0)
	})
}

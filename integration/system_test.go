package integration

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// kind is a kind of real system that stands where a server does: a server of
// another language, or a proxy in front of nodes.
type kind struct {
	name     string
	language *language  // of a server
	proxy    *proxyKind // of a proxy
}

var (
	languages = []kind{python, cpp, node}
	proxies   = []kind{nginx, haproxy}
	kinds     = slices.Concat(languages, proxies)
)

// settings are flags of a server, or directives of a proxy's configuration: of
// the process, of HTTP, and of the port for clients.
type settings struct {
	Flags                 []string
	Global, HTTP, Clients string
}

// system is a process of a kind. It has the kind's name, as has the node behind
// a proxy.
type system interface {
	server
	restart()           // starts another process on the same address
	drain()             // takes no more connections, and ends with the last RPC
	waitDrained()       // waits until it has ended so
	crash()             // ends what serves
	holdUnary()         // has unary RPCs of those who ask for it held, too
	endHeld(codes.Code) // ends the RPCs that are held
}

// start starts a system for as long as the test runs.
func (k kind) start(t *testing.T, s settings) system {
	t.Helper()
	if k.language != nil {
		return startPeer(t, k, reserveAddr(t), s.Flags...)
	}
	return startProxy(t, k, s, startNodes(t, k.name)[0])
}

// startAll starts a node of Go and a system of each kind.
func startAll(t *testing.T) []server {
	t.Helper()
	servers := all(startNodes(t, "go")...)
	for _, k := range kinds {
		servers = append(servers, k.start(t, settings{}))
	}
	return servers
}

// each runs a test once for each kind.
func each(t *testing.T, kinds []kind, test func(*testing.T, kind)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// endHeldOf ends the RPCs that a server holds with a code.
func endHeldOf(s server, code codes.Code) {
	switch s := s.(type) {
	case system:
		s.endHeld(code)
	case *leastconntest.Node:
		s.FailStreams(code)
	}
}

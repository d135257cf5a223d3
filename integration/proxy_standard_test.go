package integration

import "testing"

// gRPC's interop cases pass through a proxy. That counts are 0 after each is
// what the client checks. Deadlines are the client's alone: a node that keeps
// them, too, may be first to end an RPC, and the proxy makes 502 of that.
func TestProxyStandardCases(t *testing.T) {
	client := buildInteropClient(t)
	eachProxy(t, func(t *testing.T, k proxyKind) {
		p := startProxy(t, k, k.timeless, standardServer(startStandard(t)))
		standardCases(t, client, p.addr)
	})
}

// standardServer is grpc-go's own server, by its address.
type standardServer string

func (s standardServer) Addr() string { return string(s) }
func (s standardServer) Name() string { return "grpc-go" }
func (s standardServer) Live() int    { return 0 }

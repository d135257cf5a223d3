package leastconnbalancer_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// What a server allows on a connection is kept there, and the rest goes elsewhere or waits in
// order of arrival.
func TestStreamLimits(t *testing.T) {
	play(t, []row{
		{name: "the rest waits, in order", script: `
			limit a100; list a; burst 100 -> a100; queue 150; shows full: server's limit 100
			end a1; opened a; end a60; opened a60; end a89; opened a89`},
		{name: "the rest goes elsewhere", script: `
			limit a100; list a b; burst 250 -> a100 b150`},
		{name: "order over two limits", script: `
			limit a100 b200; list a b; burst 300 -> a100 b200; queue 70; end a30 b30; opened a30 b30; end a10; opened a10`},
		{name: "GOAWAY leaves the new connection empty", script: `
			limit a100; list a; hold 100 -> a100; goaway a; hold 60 -> a60; hold 40 -> a40; queue 1
			end a100; opened; end a1; opened a; conns a2`},
		{name: "each channel has a connection", script: `
			limit a100; list a; y: list a; hold 100 -> a100; y: hold 100 -> a100; queue 1; y: queue 1
			y: end a1; y: opened a; opened; end a1; opened a; conns a2`},
		{name: "lowered and raised", script: `
			limit a100; list a; hold 50 -> a50; limit a10; shows full: server's limit 10; queue 3; end a40; opened; end a1; opened a
			limit a12; opened a a; queue 1; limit a4294967295; opened a; hold 100 -> a100`},
		{name: "none allowed", script: `
			limit a0; list a; queue 2; wait 1; limit a2; opened a a; end a1; opened a`},
		{name: "none allowed beside another", script: `
			limit a0; list a b; burst 20 -> b20; limit b20; shows full: server's limit 20; queue 1; limit a1; opened a`},
		{name: "high limits", script: `
			limit a2147483648 b4294967295; list a b; burst 400 -> a200 b200`},
		{name: "a newcomer takes those that wait", script: `
			limit a1; list a; hold 1 -> a1; queue 2; list a b; opened b b`},
		{name: "a level spills, and takes back", script: `
			limit a2 b2 c4; list a b c/1; hold 4 -> a2 b2; hold 3 -> c3; end b1; hold 2 -> b1 c1; queue 2; limit a3; opened a; end c1; opened c`},
		{name: "health checks take a stream", script: `
			limit a3; list a; well a; hold 2 -> a2; queue 1; end a1; opened a`},
		{name: "a lower cap", config: `{"maxInFlight":2,"failurePenalty":"0s"}`, script: `
			limit a5; list a; hold 2; queue 1; goaway a; opened; end a1; opened a`},
		{name: "a higher cap", config: `{"maxInFlight":5,"failurePenalty":"0s"}`, script: `
			limit a3; list a; hold 3; queue 2; limit a9; opened a a; queue 1; end a1; opened a`},
	}...)
}

// An RPC that may not wait here goes to gRPC, as without the limit, and waits in the connection.
func TestStreamLimitFailsNoRPC(t *testing.T) {
	play(t, []row{
		{name: "none may wait", config: `{"onFull":"fail","failurePenalty":"0s"}`, script: `
			limit a2; list a; hold 2 -> a2; inside 2; end a1; begun a; end a1; begun a`},
		{name: "none may wait, one has room", config: `{"onFull":"fail","failurePenalty":"0s"}`, script: `
			limit a2; list a b; burst 20 -> a2 b18`},
		{name: "more than may wait", config: `{"maxQueued":2,"failurePenalty":"0s"}`, script: `
			limit a2; list a; hold 2 -> a2; queue 2; inside 1; end a1; begun a; opened; end a1; opened a; end a1; opened a`},
		{name: "a cap does", config: `{"maxInFlight":4,"onFull":"fail","failurePenalty":"0s"}`, script: `
			limit a2; list a; hold 2 -> a2; inside 2; full; end a1; begun a; end a1; begun a`},
	}...)
}

func TestStreamLimitIsIgnored(t *testing.T) {
	play(t, []row{
		{name: "from the start", config: `{"streamLimit":"ignore","failurePenalty":"0s"}`, script: `
			limit a2; list a; hold 2 -> a2; inside 3; end a1; begun a; limit a4; begun a; begun a`},
		{name: "at run time", script: `
			limit a2; list a; hold 2 -> a2; queue 1; config {"streamLimit":"ignore"}; queued 0; end a1; opened a
			inside 1; config {"streamLimit":"server"}; queue 1; end a1; begun a; opened; end a1; opened a`},
	}...)
}

// A server that changes its limit faster than pickers are published keeps one goroutine busy.
func TestServerThatChangesItsLimitAllTheTime(t *testing.T) {
	e := newEnv(t)
	n := e.node("a")
	n.SetStreamLimit(3)
	p := &recordingPolicy{}
	c := e.dialRecorded(p, leastconntest.ChannelConfig{}, n)
	release := make(chan struct{})
	slow := func() { <-release }
	p.publishing.Store(&slow)
	publishAll := sync.OnceFunc(func() { close(release) })
	defer publishAll()
	const changes = 100
	before := runtime.NumGoroutine()
	for i := range changes {
		limit := uint32(4 + i%2)
		n.SetStreamLimit(limit)
		e.wait("the limit is known", func() bool { return c.of(n.Addr()).Members[0].Connection.Limit == int64(limit) })
	}
	e.atMostGoroutines(before + changes/2)
	publishAll()
	c.calls(5)
	require.Equal(t, 1, n.Conns())
}

package leastconnbalancer_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

func init() {
	steps["drain"] = func(p *player, name string) {
		undrain, err := leastconnbalancer.Drain(p.key, p.script.nodes[name].Addr())
		require.NoError(p.env, err, p.script.line)
		p.script.undrains[name] = append(p.script.undrains[name], undrain)
	}
	steps["undrain"] = func(p *player, name string) { // the last drain
		all := p.script.undrains[name]
		all[len(all)-1]()
		all[len(all)-1]() // which changes nothing
		p.script.undrains[name] = all[:len(all)-1]
	}
	steps["reaches"] = func(p *player, name string) { // once the levels know of a drain's end, too
		p.env.wait(p.script.line, func() bool { node, err := p.Unary(p.env.ctx); return err == nil && node == name })
	}
	during["drain"], during["undrain"] = true, true
}

// A drained node gets nothing new and keeps what it has, whatever resolvers, connections
// and health checks do, until each drain has ended or nobody lists it.
func TestDrain(t *testing.T) {
	play(t, []row{
		{name: "one", script: `
			list a b; hold 6 -> a3 b3; drain a; call 10 -> b10; hold 2 -> b2; end a1; undrain a; hold 3 -> a3; conns a1 b1`},
		{name: "lists and weights", script: `
			list a b; drain a; list a:5 b; call 3 -> b3; list b a:7; call 3 -> b3; list a:0 b; list a b; call 3 -> b3
			list a b c; call 4 -> b2 c2; config {"maxInFlight":5}; call 2 -> b1 c1; list a b; undrain a; call 4 -> a2 b2; conns a1 b1 c1`},
		{name: "connections and health", script: `
			list a b; drain a; goaway a; call 3 -> b3; unwell a; well a; call 3 -> b3; stop a; start a; call 3 -> b3; undrain a; hold 2 -> a1 b1`},
		{name: "all channels", script: `
			list a b; y: list a b; hold 2 -> a1 b1; drain a; call 2 -> b2; y: call 2 -> b2; list b; y: call 2 -> b2; list a b; call 2 -> b2
			z: list a b; z: call 2 -> b2; close; y: call 2 -> b2; y: undrain a; z: hold 1; y: hold 1; y: call 2`},
		{name: "two drains", script: `
			list a b; drain a; drain a; undrain a; call 2 -> b2; undrain a; call 2 -> a1 b1`},
		{name: "it ends with the list", script: `
			list a b; hold 2 -> a1 b1; drain a; list b; list a b; hold 2 -> a1 b1; drain a; call 2 -> b2; undrain a; undrain a; call 2 -> a1 b1`},
		{name: "it stays with the key", config: `{"resourceKey":"KEY"}`, script: `
			list a b; drain a; call 2 -> b2; config {"resourceKey":"KEY 2"}; call 2 -> a1 b1; drain b; call 2 -> a2; undrain a; call 2 -> a2`},
		{name: "a level", config: `{"priorityFailover":"3600s"}`, script: `
			list a b c/1; drain a; call 2 -> b2; drain b; call 2 -> c2; y: list a b c/1; y: call 2 -> c2; y: close; list a b:3 c/1; call 2 -> c2; undrain a; reaches a; call 2 -> a2
			drain a; drain c; fails all 3 endpoints are draining (weight 0, or by Drain); undrain c; reaches c; undrain b; reaches b; call 2 -> b2`},
		{name: "all", script: `
			list a b c:0; hold 2 -> a1 b1; drain a; drain b; fails least_conn: all 3 endpoints are draining (weight 0, or by Drain)
			wait 2; undrain b; opened b b; conns a1 b1 c1`},
		{name: "all and a failed one", script: `list a b; drain a; stop b; fails connection refused; undrain a; reaches a`},
		{name: "the last that failed", script: `list a b; stop b; drain b; drain a; fails all 2 endpoints are draining`},
		{name: "a failed one", script: `list a b; stop a; drain a; start a; call 2 -> b2; stop b; fails connection refused; undrain a; reaches a`},
		{name: "RPCs that wait for room", config: `{"maxInFlight":1,"failurePenalty":"0s"}`, script: `
			list a b; hold 2 -> a1 b1; queue 3; drain a; end b; opened b; end b; opened b; undrain a; end a; opened a`},
	}...)
}

// Streams that can move leave a drained node, and come back for level loads.
func TestStreamsLeaveWhatIsDrained(t *testing.T) {
	play(t, row{"", eager, `
			list a b c; y: list a b c; sessions 150; y: sessions 150 -> a100 b100 c100; drain c; level a150 b150; told 100
			undrain c; level a100 b100 c100; told 200`})
}

// RPCs that wait for a connecting endpoint choose anew when that is drained.
func TestDrainDuringStartup(t *testing.T) {
	inFakeTime(t, "one is ready", func(t *testing.T, c *fakeConn) {
		c.list(`{"resourceKey":"`+t.Name()+`"}`, "abc")
		c.connect("a")
		s := c.streams()
		require.Equal(t, "a1 wait2", s.open(3, 0))
		undrainB, err := leastconnbalancer.Drain(t.Name(), "b")
		require.NoError(t, err)
		_, err = leastconnbalancer.Drain(t.Name(), "c")
		require.NoError(t, err)
		passes(10 * time.Millisecond)
		require.Equal(t, "a3", s.wake())
		undrainB()
		passes(10 * time.Millisecond)
		require.Equal(t, "a4", s.open(1, 0), "b is back while a is ready: nobody waits for it")
		c.connect("bc")
		require.Equal(t, "a4 b2", s.open(2, 0))
	})
	inFakeTime(t, "and back before one is ready", func(t *testing.T, c *fakeConn) {
		c.list(`{"resourceKey":"`+t.Name()+`"}`, "ab")
		undrain, err := leastconnbalancer.Drain(t.Name(), "b")
		require.NoError(t, err)
		passes(10 * time.Millisecond)
		undrain()
		passes(10 * time.Millisecond)
		c.connect("a")
		require.Equal(t, "a1 wait1", c.streams().open(2, 0))
	})
}

// A level that is not drained any more is waited for as one that begins to connect.
func TestFailoverAfterDrain(t *testing.T) {
	inFakeTime(t, "", func(t *testing.T, c *fakeConn) {
		c.list(`{"priorityFailover":"10s","resourceKey":"`+t.Name()+`"}`, "a", "b")
		c.connect("b")
		passes(5 * time.Second)
		s := c.streams()
		require.Equal(t, "wait1", s.open(1, 0))
		undrain, err := leastconnbalancer.Drain(t.Name(), "a")
		require.NoError(t, err)
		passes(10 * time.Millisecond)
		require.Equal(t, "b1", s.wake())
		undrain()
		passes(6 * time.Second)
		require.Equal(t, "b1 wait1", s.open(1, 0))
		passes(4 * time.Second)
		require.Equal(t, "b2", s.wake())
	})
}

// A key, a target as it was dialled and its canonical form name a service; an id and each
// address its endpoint. The error says what is known.
func TestWhatDrainIsGiven(t *testing.T) {
	e := newEnv(t)
	ns := e.nodes("a", "b")
	conn, err := grpc.NewClient(ns[0].Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{ResourceKey: "orders"}.ServiceConfig()))
	require.NoError(t, err)
	defer conn.Close()
	conn.Connect()
	c := &channel{env: e, key: "orders"}
	e.wait("the endpoint is listed", func() bool { return len(c.snapshot().Endpoints) == 1 })
	for _, key := range []string{"orders", ns[0].Addr(), "dns:///" + ns[0].Addr(), "dns:" + ns[0].Addr()} {
		undrain, err := leastconnbalancer.Drain(key, ns[0].Addr())
		require.NoError(t, err, key)
		require.True(t, c.snapshot().Endpoints[0].Drained, key)
		undrain()
		require.False(t, c.snapshot().Endpoints[0].Drained, key)
	}
	for _, wrong := range [][3]string{
		{"orders", "10.0.0.9:1", `least_conn: Drain: no channel of "orders" lists an endpoint "10.0.0.9:1": it has "` + ns[0].Addr() + `"`},
		{"orders", "", `lists an endpoint "": it has "` + ns[0].Addr() + `"`},
		{"order", ns[0].Addr(), `least_conn: Drain: no channel has the resource key or target "order", to drain "` + ns[0].Addr() + `" there: in use are "`},
		{"", ns[0].Addr(), `resource key or target ""`},
		{"\x00%zz://\n", strings.Repeat("x", 1000), `target "\x00%zz://\n"`},
	} {
		undrain, err := leastconnbalancer.Drain(wrong[0], wrong[1])
		require.ErrorContains(t, err, wrong[2])
		undrain()
	}
	undrain, err := leastconnbalancer.Drain("orders", ns[0].Addr())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	e.wait("the drain has ended with the channel", func() bool {
		_, err := leastconnbalancer.Drain("orders", ns[0].Addr())
		return err != nil
	})
	undrain()
}

// Drains from many goroutines, while lists change and RPCs run, leave all as it was.
func TestDrainsAtAnyTime(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	c := e.dial(ns...)
	d := e.dialAs(c.key, leastconntest.ChannelConfig{ServiceConfig: keyed(c.key).ServiceConfig}, ns...)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for k := range 50 {
				undrain, err := leastconnbalancer.Drain(c.key, ns[(i+k)%2].Addr()) // never the third one
				require.NoError(t, err)
				if k%3 > 0 {
					go undrain()
				}
				_, err = []*channel{c, d}[i%2].Unary(e.ctx)
				require.NoError(t, err)
				undrain()
			}
		})
	}
	for range 20 {
		require.NoError(t, c.UpdateNodes(ns[1:]...))
		require.NoError(t, c.UpdateNodes(ns...))
		require.NoError(t, d.UpdateNodes(ns[2], ns[0], ns[1]))
	}
	wg.Wait()
	require.NoError(t, ledgerOf(c.key).Check())
	for _, n := range c.snapshot().Endpoints {
		require.False(t, n.Drained)
	}
	for _, channel := range []*channel{c, d} {
		channel.waitReady(ns...)
		require.ElementsMatch(t, []string{"a", "b", "c"}, channel.calls(3))
	}
}

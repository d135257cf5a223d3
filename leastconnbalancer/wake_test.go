package leastconnbalancer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// full is a channel whose only usable node, a, is at its cap of one stream.
type full struct {
	*channel
	a, b  *leastconntest.Node
	other *channel // holds the stream
	held  *leastconntest.Stream
}

// newFull lists a and, when there are more, b with the weight 0.
func newFull(t *testing.T, b bool) *full {
	l := newLab(t)
	ns := l.nodes("a", "b")
	f := &full{a: ns[0], b: ns[1]}
	cfg := guarded(leastconnbalancer.Config{ResourceKey: l.Name(), MaxInFlight: 1})
	cfg.DialOptions = quickly().DialOptions
	f.other = l.dialAs(l.Name(), cfg, f.a)
	if cfg.Endpoints = leastconntest.Endpoints(f.a); b {
		cfg.Endpoints = append(cfg.Endpoints, lcresolver.SetWeight(f.b.Endpoint(), 0))
	}
	f.channel = l.dialAs(l.Name(), cfg, f.a)
	f.waitMembers(2, f.a)
	if b {
		f.waitReady(f.b)
	}
	held, _ := f.other.hold(1)
	f.held = held[0]
	return f
}

func (f *full) list(eps ...resolver.Endpoint) { require.NoError(f.lab, f.Update(eps...)) }

// wakings are what gives an RPC room that waits.
var wakings = []struct {
	name string
	b    bool // b is listed and has the weight 0
	make func(*full)
}{
	{name: "release in another channel", make: func(f *full) { require.NoError(f.lab, f.held.End()) }},
	{name: "cancel in another channel", make: func(f *full) { f.held.Cancel() }},
	{name: "another channel closes", make: func(f *full) { require.NoError(f.lab, f.other.Close()) }},
	{name: "new node", make: func(f *full) { f.list(f.a.Endpoint(), f.b.Endpoint()) }},
	{name: "other list", make: func(f *full) { f.list(f.b.Endpoint()) }},
	{name: "new node below", make: func(f *full) { f.list(f.a.Endpoint(), lcresolver.SetPriority(f.b.Endpoint(), 1)) }},
	{name: "new node above", make: func(f *full) { f.list(lcresolver.SetPriority(f.a.Endpoint(), 1), f.b.Endpoint()) }},
	{name: "cap raised", make: func(f *full) { f.reconfigure(leastconnbalancer.Config{ResourceKey: f.key, MaxInFlight: 2}, f.a) }},
	{name: "cap lifted", make: func(f *full) { f.reconfigure(leastconnbalancer.Config{ResourceKey: f.key}, f.a) }},
	{name: "own cap raised", make: func(f *full) { f.list(lcresolver.SetMaxInFlight(f.a.Endpoint(), 2)) }},
	{name: "own cap lifted", make: func(f *full) { f.list(lcresolver.SetMaxInFlight(f.a.Endpoint(), 0)) }},
	{name: "weight above 0", b: true, make: func(f *full) { f.list(f.a.Endpoint(), lcresolver.SetWeight(f.b.Endpoint(), 1)) }},
	{name: "other resource key", make: func(f *full) { f.reconfigure(leastconnbalancer.Config{ResourceKey: f.key + "2", MaxInFlight: 1}, f.a) }},
	{name: "other policy", make: func(f *full) {
		require.NoError(f.lab, f.UpdateConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`, f.a.Endpoint()))
	}},
	{name: "node is back", make: func(f *full) {
		f.a.Stop()
		f.waitMembers(0, f.a)
		require.Error(f.lab, f.held.Wait())
		require.NoError(f.lab, f.a.Restart())
	}},
}

// An RPC that waits is woken by whatever makes room for it.
func TestWaitersWakeOn(t *testing.T) {
	for _, w := range wakings {
		t.Run(w.name, func(t *testing.T) {
			f := newFull(t, w.b)
			var rpcs []<-chan result
			for i := range 3 { // of which the room of one must do for all
				rpcs = append(rpcs, f.lab.async(func() (string, error) { return f.Unary(f.lab.ctx, grpc.WaitForReady(true)) }))
				f.waits(i + 1)
			}
			w.make(f)
			for _, rpc := range rpcs {
				r := <-rpc
				require.NoError(t, r.err)
				require.Contains(t, []string{"a", "b"}, r.node)
			}
			require.Zero(t, f.snapshot().Waiting)
		})
	}
}

// The caps of the configuration hold under another resource key, too.
func TestCapsHoldUnderAnotherKey(t *testing.T) {
	f := newFull(t, false)
	f.key += "2"
	f.reconfigure(leastconnbalancer.Config{ResourceKey: f.key, MaxInFlight: 1}, f.a)
	held, _ := f.hold(1)
	rpc := f.line(1)
	require.NoError(t, held[0].End())
	require.Equal(t, result{node: "a"}, <-rpc[0])

	f.key += "3"
	f.reconfigure(leastconnbalancer.Config{ResourceKey: f.key, MaxInFlight: 3}, f.a)
	f.hold(3)
	rpc = f.line(1)
	f.reconfigure(leastconnbalancer.Config{ResourceKey: f.key, MaxInFlight: 4}, f.a)
	require.Equal(t, result{node: "a"}, <-rpc[0])
}

func TestD60NewNodeTakesTheFirstWaiter(t *testing.T) {
	l := newLab(t)
	o := &order{}
	ns := o.nodes(l, "a", "b", "c", "d")
	for _, n := range ns {
		n.HoldUnary(true)
	}
	c := l.dialWith(guarded(capped(1)), ns[:2]...)
	rpcs := []<-chan result{o.send(c, "0"), o.send(c, "1")}
	l.served(ns, 1, 1, 0, 0)
	for i, id := range []string{"2", "3", "4", "5"} {
		rpcs = append(rpcs, o.send(c, id))
		c.waits(i + 1)
	}

	c.update(ns[:3]...)
	since := time.Now()
	require.NoError(t, ns[2].WaitLive(l.ctx, 1))
	require.Less(t, time.Since(since), 2*time.Second)
	o.have(l, "0", "1", "2")
	c.waits(3)
	c.reconfigure(capped(2), ns[:3]...)
	o.have(l, "0", "1", "2", "3", "4", "5")
	c.counts(ns[:3], 2, 2, 2)
	l.conns(ns[:3], 1, 1, 1)
	for _, n := range ns {
		n.HoldUnary(false)
	}
	for _, rpc := range rpcs {
		require.NoError(t, (<-rpc).err)
	}
}

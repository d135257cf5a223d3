package leastconnbalancer_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// keyed selects the policy with a resource key.
func keyed(key string) leastconntest.ChannelConfig {
	return leastconntest.ChannelConfig{ServiceConfig: leastconnbalancer.Config{ResourceKey: key}.ServiceConfig()}
}

// listKeyed lists the nodes with a resource key from the resolver.
func listKeyed(key string, nodes ...*leastconntest.Node) resolver.State {
	return lcresolver.SetResourceKey(resolver.State{Endpoints: leastconntest.Endpoints(nodes...)}, key)
}

// dialKeyed opens a channel whose resolver gives the key.
func (l *lab) dialKeyed(key string, cfg leastconntest.ChannelConfig, nodes ...*leastconntest.Node) *channel {
	l.Helper()
	c := l.unused(cfg)
	require.NoError(l, c.UpdateState(listKeyed(key, nodes...)))
	c.Connect()
	c.key = key
	return c
}

// sharing is two channels, the first to one node and the second to two.
type sharing struct {
	name string
	dial func(l *lab, nodes []*leastconntest.Node) (first, second *channel)
}

var shared = []sharing{
	{"same target", func(l *lab, ns []*leastconntest.Node) (*channel, *channel) {
		cfg := leastconntest.ChannelConfig{Target: l.Name()}
		return l.dialWith(cfg, ns[0]), l.dialWith(cfg, ns...)
	}},
	{"same key of the config", func(l *lab, ns []*leastconntest.Node) (*channel, *channel) {
		return l.dialAs(l.Name(), keyed(l.Name()), ns[0]), l.dialAs(l.Name(), keyed(l.Name()), ns...)
	}},
	{"same key of the resolver", func(l *lab, ns []*leastconntest.Node) (*channel, *channel) {
		var cfg leastconntest.ChannelConfig
		return l.dialKeyed(l.Name(), cfg, ns[0]), l.dialKeyed(l.Name(), cfg, ns...)
	}},
	{"keys of config and resolver", func(l *lab, ns []*leastconntest.Node) (*channel, *channel) {
		return l.dialAs(l.Name(), keyed(l.Name()), ns[0]), l.dialKeyed(l.Name(), leastconntest.ChannelConfig{}, ns...)
	}},
}

func TestD78ChannelsToOneServiceShare(t *testing.T) {
	for _, s := range shared {
		t.Run(s.name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b")
			first, second := s.dial(l, ns)
			second.waitMembers(2, ns[0])
			second.waitMembers(1, ns[1])
			lost, _ := first.hold(6)
			_, by := second.hold(6)
			require.Equal(t, map[string]int{"b": 6}, by)
			second.counts(ns, 6, 6)

			require.NoError(t, first.Close())
			for _, s := range lost {
				require.Error(t, s.Wait())
			}
			second.counts(ns, 0, 6)
			second.waitMembers(1, ns...)
			_, by = second.hold(6)
			require.Equal(t, map[string]int{"a": 6}, by)
			l.served(ns, 6, 6)
		})
	}
}

var apart = []sharing{
	{"other target", func(l *lab, ns []*leastconntest.Node) (*channel, *channel) {
		return l.dial(ns[0]), l.dial(ns...)
	}},
	{"other key", func(l *lab, ns []*leastconntest.Node) (*channel, *channel) {
		one, two := keyed(l.Name()+"/1"), keyed(l.Name()+"/2")
		one.Target, two.Target = l.Name(), l.Name()
		return l.dialAs(l.Name()+"/1", one, ns[0]), l.dialAs(l.Name()+"/2", two, ns...)
	}},
	{"other key of the resolver", func(l *lab, ns []*leastconntest.Node) (*channel, *channel) {
		cfg := leastconntest.ChannelConfig{Target: l.Name()}
		return l.dialKeyed(l.Name()+"/1", cfg, ns[0]), l.dialKeyed(l.Name()+"/2", cfg, ns...)
	}},
	{"key and none", func(l *lab, ns []*leastconntest.Node) (*channel, *channel) {
		none, one := leastconntest.ChannelConfig{Target: l.Name()}, keyed(l.Name())
		one.Target = l.Name()
		return l.dialAs(l.Name(), one, ns[0]), l.dialWith(none, ns...)
	}},
}

func TestD80OthersDoNotShare(t *testing.T) {
	for _, s := range apart {
		t.Run(s.name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b")
			first, second := s.dial(l, ns)
			first.waitReady(ns[0])
			second.waitReady(ns...)
			first.hold(6)
			_, by := second.hold(6)
			require.Equal(t, map[string]int{"a": 3, "b": 3}, by)
			first.counts(ns, 6, 0)
			second.counts(ns, 3, 3)
			l.served(ns, 9, 3)
		})
	}
}

func TestD80ConfigKeyComesBeforeTheResolvers(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	config, resolved := l.Name()+"/config", l.Name()+"/resolver"
	c := l.dialKeyed(resolved, keyed(config), ns...)
	c.key = config
	c.waitReady(ns...)
	c.hold(4)
	c.counts(ns, 2, 2)
	c.key = resolved
	require.Empty(t, c.snapshot().Endpoints)
	c.key = c.Conn().CanonicalTarget()
	require.Empty(t, c.snapshot().Endpoints)
}

func TestD80ChangedKeyMovesTheBalancer(t *testing.T) {
	moves := map[string]func(*channel, string, []*leastconntest.Node) error{
		"config": func(c *channel, key string, ns []*leastconntest.Node) error {
			return c.UpdateConfig(keyed(key).ServiceConfig, leastconntest.Endpoints(ns...)...)
		},
		"resolver": func(c *channel, key string, ns []*leastconntest.Node) error {
			return c.UpdateState(listKeyed(key, ns...))
		},
	}
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b")
			c := l.dial(ns...)
			moved := *c
			moved.key = l.Name()
			held, _ := c.hold(6)

			require.NoError(t, move(c, moved.key, ns))
			c.counts(ns, 3, 3)
			moved.counts(ns, 0, 0)
			elsewhere := moved.load(ns, 0, 2)
			require.NoError(t, held[0].End())
			require.Equal(t, int64(5), c.snapshot().InFlight)
			moved.counts(ns, 0, 2)

			require.NoError(t, move(c, c.key, ns))
			_, by := c.hold(1)
			require.Equal(t, map[string]int{held[0].Node(): 1}, by)
			c.counts(ns, 3, 3)
			moved.counts(ns, 0, 2)
			require.NoError(t, leastconntest.EndAll(elsewhere))
			require.Empty(t, moved.snapshot().Endpoints)
			for _, n := range ns {
				require.Equal(t, 1, n.Conns(), "connections to %s", n.Name())
			}
		})
	}
}

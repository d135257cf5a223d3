package leastconnbalancer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// slowly lets newcomers start slowly, with a tenth of their weight at first. Over
// 100 s, that stays so for the first 10 s.
func slowly(window time.Duration) leastconnbalancer.Config {
	return leastconnbalancer.Config{SlowStart: &leastconnbalancer.SlowStart{Window: leastconnbalancer.Duration(window)}}
}

// shares checks which parts of their weights the nodes have now.
func (c *channel) shares(nodes []*leastconntest.Node, want ...float64) {
	c.lab.Helper()
	var got []float64
	for _, n := range nodes {
		got = append(got, c.member(n).SlowStartFactor)
	}
	require.Equal(c.lab, want, got, "shares by node")
}

// A node that joins a loaded fleet is given a tenth of what is missing at first,
// and all of it once the ramp is over.
func TestD44ColdNodeIsNotFlooded(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dialWith(guarded(slowly(100*time.Second)), ns[:2]...)
	c.shares(ns[:2], 1, 1)
	_, err := c.OpenTogether(l.ctx, 200)
	require.NoError(t, err)
	c.counts(ns, 100, 100, 0)
	c.update(ns...)
	c.shares(ns, 1, 1, 0.1)
	c.hold(20)
	c.counts(ns, 105, 105, 10)
	c.hold(2)
	c.counts(ns, 106, 106, 10)

	c.reconfigure(leastconnbalancer.Config{}, ns...)
	c.shares(ns, 1, 1, 1)
	_, err = c.OpenTogether(l.ctx, 98)
	require.NoError(t, err)
	for _, n := range ns {
		count, _ := c.inFlight(n)
		require.InDelta(t, 106.5, count, 0.5, "streams on %s", n.Name())
	}
	l.conns(ns, 1, 1, 1)
}

// A ramp ends in time, whatever lists and configurations come meanwhile, and the
// node is level then.
func TestD46RampEndsInTime(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	cfg := slowly(2 * time.Second)
	c := l.dialWith(guarded(cfg), ns[:2]...)
	c.hold(20)
	before := time.Now()
	c.update(ns...)
	pushed, last := time.Now(), c.member(ns[2]).SlowStartFactor
	require.GreaterOrEqual(t, last, 0.5)
	require.Less(t, last, 1.0)
	l.wait("the ramp is over", func() bool {
		if time.Since(pushed) > 50*time.Millisecond {
			pushed = time.Now()
			require.NoError(t, c.UpdateNodes(ns...))
			c.reconfigure(cfg, ns...)
		}
		share := c.member(ns[2]).SlowStartFactor
		require.GreaterOrEqual(t, share, last)
		last = share
		return share == 1
	})
	require.GreaterOrEqual(t, time.Since(before), 2*time.Second)
	require.Less(t, time.Since(before), 6*time.Second)
	c.hold(10)
	c.counts(ns, 10, 10, 10)
	l.conns(ns, 1, 1, 1)
}

// A node that is gone with its last stream and listed again is new; one whose
// streams live on is not.
func TestD46ReturnOfANode(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c")
	c := l.dialWith(guarded(slowly(100*time.Second)), ns...)
	c.shares(ns, 1, 1, 1)
	held := c.load(ns, 0, 0, 2)
	c.update(ns[:2]...)
	c.update(ns...)
	c.shares(ns, 1, 1, 1)
	c.update(ns[:2]...)
	require.NoError(t, leastconntest.EndAll(held))
	c.update(ns...)
	c.shares(ns, 1, 1, 0.1)
}

// flaps are ways in which a node is lost, until it is let back.
var flaps = map[string]func(*channel, *dialer, *leastconntest.Node) (back func()){
	"connection": func(c *channel, d *dialer, n *leastconntest.Node) func() {
		tried := d.attempts(n)
		c.stop(n)
		c.lab.wait("it has failed", func() bool { return d.attempts(n) >= tried+2 })
		return func() { require.NoError(c.lab, n.Restart()) }
	},
	"health": func(c *channel, _ *dialer, n *leastconntest.Node) func() {
		n.SetServing(false)
		c.lab.wait("it is out of use", func() bool { return !c.ready(n) })
		return func() { n.SetServing(true) }
	},
}

// A node that has failed and is back starts slowly, even if the balancer has
// gone to another ledger meanwhile.
func TestD46FlapRestarts(t *testing.T) {
	const config = `{"loadBalancingConfig":[{"least_conn":{"resourceKey":"%s","slowStart":{"window":"100s"}}}],"healthCheckConfig":{"serviceName":""}}`
	for name, lose := range flaps {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			ns := l.nodes("a", "b")
			d := newDialer()
			cfg := leastconntest.ChannelConfig{ServiceConfig: fmt.Sprintf(config, l.Name()), DialOptions: dialOptions(d)}
			c := l.dialAs(l.Name(), cfg, ns...)
			c.shares(ns, 1, 1)
			for range 2 {
				back := lose(c, d, ns[1])
				back()
				c.waitReady(ns[1])
				c.shares(ns, 1, 0.1)
			}
			c.reconfigure(leastconnbalancer.Config{ResourceKey: c.key}, ns...)
			c.shares(ns, 1, 1)

			require.NoError(t, c.UpdateConfig(cfg.ServiceConfig, leastconntest.Endpoints(ns...)...))
			c.waitReady(ns...)
			back := lose(c, d, ns[1])
			c.key += "2"
			require.NoError(t, c.UpdateConfig(fmt.Sprintf(config, c.key), leastconntest.Endpoints(ns...)...))
			c.waitReady(ns[0])
			require.False(t, c.ready(ns[1]))
			back()
			c.waitReady(ns[1])
			c.shares(ns, 1, 0.1)
		})
	}
}

// A server that ages its connections is none that has failed.
func TestGoAwayDoesNotRamp(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	c := l.dialWith(guarded(slowly(100*time.Second)), ns...)
	stop := c.watch(func(s state.Snapshot) error {
		for _, n := range s.Endpoints {
			if n.Members[0].SlowStartFactor != 1 {
				return fmt.Errorf("node %v ramps", n.Addresses)
			}
		}
		return nil
	})
	for i := range 10 {
		n := ns[i%2]
		c.calls(2) // one at each: their connections are of use
		conns := n.Conns()
		n.GoAway()
		l.wait("it is back", func() bool { return n.Conns() > conns && c.ready(n) })
	}
	c.shares(ns, 1, 1)
	stop()
}

// A newcomer among busy nodes is not starved, however small its share.
func TestNewcomerIsNotStarved(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	c := l.dialWith(guarded(slowly(100*time.Second)), ns[:3]...)
	c.hold(6)
	c.update(ns...)
	c.shares(ns, 1, 1, 1, 0.1)
	calls := c.calls(200)
	for i := 0; i < len(calls); i += 40 { // 4 nodes by a tenth
		require.Equal(t, 1, tally(calls[i : i+40])["d"], "calls: %v", calls)
	}
}

// Switched on at run time, it is for those that come then; switched off, it is
// over for all.
func TestSlowStartChangesAtRunTime(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b", "c", "d")
	c := l.dial(ns[:2]...)
	c.update(ns[:3]...)
	c.shares(ns[:3], 1, 1, 1)
	c.reconfigure(slowly(time.Hour), ns[:2]...)
	c.shares(ns[:2], 1, 1)
	c.update(ns...)
	c.shares(ns, 1, 1, 0.1, 0.1)
	half := slowly(time.Hour)
	half.SlowStart.MinWeightPercent = ptr(50.0)
	c.reconfigure(half, ns...)
	c.shares(ns, 1, 1, 0.5, 0.5)
	c.reconfigure(slowly(0), ns...)
	c.shares(ns, 1, 1, 1, 1)
	l.conns(ns, 1, 1, 2, 1)
}

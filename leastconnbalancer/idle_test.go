package leastconnbalancer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// A channel that has become idle, and so has lost its balancer, finds the load
// of its service again when it wakes, for as long as another channel has it.
func TestIdleAndWake(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	busy := l.dialWith(leastconntest.ChannelConfig{Target: "idle-and-wake"}, ns[0])
	busy.hold(4)
	for range 2 {
		c := l.dialWith(leastconntest.ChannelConfig{
			Target:      "idle-and-wake",
			DialOptions: []grpc.DialOption{grpc.WithIdleTimeout(300 * time.Millisecond)},
		}, ns...)
		l.wait("the channel is idle", func() bool { return c.Conn().GetState() == connectivity.Idle })
		c.counts(ns, 4, 0)
		c.Connect()
		l.wait("b is ready", func() bool { return c.ready(ns[1]) })
		streams, by := c.hold(4)
		require.Equal(t, map[string]int{"b": 4}, by)
		c.counts(ns, 4, 4)
		require.NoError(t, leastconntest.EndAll(streams))
		require.NoError(t, c.Close())
	}
}

package scenario

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// sleeper is a channel to a and b that is slow to wake and falls asleep easily.
type sleeper struct {
	*Client
	a, b   *Host
	asleep atomic.Bool  // has been
	naps   atomic.Int32 // that it takes before calls while no session is open
}

func (s *sleeper) dial(r *Run) {
	s.a, s.b = r.hosts[0], r.hosts[1]
	s.Client = r.Dial(ClientConfig{Options: []grpc.DialOption{
		grpc.WithIdleTimeout(30 * time.Millisecond), grpc.WithContextDialer(s.connect), grpc.WithChainStreamInterceptor(s.nap),
	}})
}

// connect reaches b only after a has got many calls.
func (s *sleeper) connect(ctx context.Context, addr string) (net.Conn, error) {
	if s.asleep.Load() && addr == s.b.Addr() {
		enough := s.a.Started() + 10
		if err := leastconntest.WaitFor(ctx, "calls to a", func() bool { return s.a.Started() >= enough }); err != nil {
			return nil, err
		}
	}
	return s.dials.dial(ctx, addr)
}

// nap lets the channel fall asleep before a call.
func (s *sleeper) nap(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, call grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if s.asleep.Load() && s.a.Live()+s.b.Live() == 0 && s.naps.Add(-1) >= 0 {
		idle := func() bool { return conn.GetState() == connectivity.Idle }
		if err := leastconntest.WaitFor(ctx, "a nap", idle); err != nil {
			return nil, err
		}
	}
	return call(ctx, desc, conn, method, opts...)
}

// A channel that falls asleep again while it wakes up has all its hosts when its sessions open.
func TestWakeWaitsForEachHost(t *testing.T) {
	t.Parallel()
	o := Play(t.Context(), start(t, "ab"), exact(), Scenario{Hosts: 2, Play: func(r *Run) {
		var s sleeper
		s.dial(r)
		s.List("ab")
		s.Idle()
		s.naps.Store(4)
		s.asleep.Store(true)
		s.Wake(4)
		assert.Negative(t, s.naps.Load())
	}})
	require.NoError(t, o.Err)
	assert.Equal(t, Loads("ab", 2, 2), o.After)
	assert.Empty(t, o.Misplacements())
}

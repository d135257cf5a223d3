package leastconnbalancer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestD49NoSinkhole where time is a bubble's, and so nothing else has a part in
// it.
func TestD49NoSinkholeInFakeTime(t *testing.T) {
	for name, config := range map[string]string{"default config": `{}`, "without a config": ``} {
		inFakeTime(t, name, func(t *testing.T, c *fakeConn) {
			with, without := c.closedLoop(config, "abc", "a"), newFakeConn(t).closedLoop(config, "bc", "")
			require.Zero(t, without.failed)
			require.Equal(t, 1200, without.healthy)
			require.GreaterOrEqual(t, with.healthy, 1188, "healthy calls")
			require.InDelta(t, 12, with.failed, 2, "failed calls")
			require.InDelta(t, 6, with.late, 1, "failed calls of the last second")
		})
	}
}

// closedLoop is what came of workers' calls.
type closedLoop struct {
	mu                    sync.Mutex
	healthy, failed, late int
}

// closedLoop lets twelve workers call the endpoints, of which one fails at once
// and the others take 20 ms, for two seconds.
func (c *fakeConn) closedLoop(config, names, bad string) *closedLoop {
	c.t.Helper()
	c.list(config, names)
	c.ready(names)
	loop, begun := &closedLoop{}, time.Now()
	var workers sync.WaitGroup
	for range 12 {
		workers.Go(func() {
			for time.Since(begun) < 2*time.Second && !c.t.Failed() {
				if c.call(bad) {
					loop.note(&loop.healthy)
					continue
				}
				loop.note(&loop.failed)
				if time.Since(begun) >= time.Second {
					loop.note(&loop.late)
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	workers.Wait()
	return loop
}

func (l *closedLoop) note(what *int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*what++
}

// call makes an RPC of 20 ms, except on the bad endpoint, where it fails.
func (c *fakeConn) call(bad string) bool {
	c.mu.Lock()
	p := c.state.Picker
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(c.t.Context()) // which tells RPCs apart
	defer cancel()
	res, err := p.Pick(balancer.PickInfo{Ctx: ctx})
	if !assert.NoError(c.t, err) {
		return false
	}
	info := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
	if res.SubConn.(*fakeSubConn).name == bad {
		info.Err = status.Error(codes.Unavailable, "at once")
	} else {
		time.Sleep(20 * time.Millisecond)
	}
	res.Done(info)
	return info.Err == nil
}

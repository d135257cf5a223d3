package leastconnbalancer_test

import (
	"context"
	"fmt"
	"strings"
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

// Caps change nothing of that: with healthy endpoints at their caps, one that fails at
// once gets its cap in a second, whether the others' RPCs wait for room or are turned
// away. Where all fail, they do so as fast as they answer.
func TestNoSinkholeWithCapsInFakeTime(t *testing.T) {
	for _, onFull := range []string{"queue", "fail"} {
		for _, callers := range []int{12, 24, 48} {
			config := fmt.Sprintf(`{"maxInFlight":4,"onFull":%q}`, onFull)
			inFakeTime(t, fmt.Sprintf("%s, %d callers", onFull, callers), func(t *testing.T, c *fakeConn) {
				got := c.cappedLoop(config, callers, "a")
				require.LessOrEqual(t, got.failed*20, got.failed+got.healthy, "%d of %d calls failed", got.failed, got.failed+got.healthy)
				require.InDelta(t, 800, got.healthy, 16, "healthy calls")

				got = newFakeConn(t).cappedLoop(config, callers, "abc")
				require.Zero(t, got.healthy)
				require.Greater(t, got.failed, 12_000, "they fail as fast as they answer: 3 times 4 in 2 ms")
			})
		}
	}
}

// cappedLoop lets callers call three endpoints for five seconds, of which the bad ones
// fail after 2 ms and the others take 50 ms. Who finds no room waits or tries again.
func (c *fakeConn) cappedLoop(config string, callers int, bad string) *closedLoop {
	c.t.Helper()
	c.list(config, "abc")
	c.ready("abc")
	loop, begun := &closedLoop{}, time.Now()
	var workers sync.WaitGroup
	for range callers {
		workers.Go(func() {
			for time.Since(begun) < 5*time.Second {
				res, found := c.pickInTime(begun.Add(5 * time.Second))
				if !found {
					return
				}
				info := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
				if strings.Contains(bad, res.SubConn.(*fakeSubConn).name) {
					time.Sleep(2 * time.Millisecond)
					info.Err = status.Error(codes.Unavailable, "at once")
					loop.note(&loop.failed)
				} else {
					time.Sleep(50 * time.Millisecond)
					loop.note(&loop.healthy)
				}
				res.Done(info)
			}
		})
	}
	workers.Wait()
	return loop
}

// pickInTime picks for an RPC until it finds room or its deadline.
func (c *fakeConn) pickInTime(deadline time.Time) (balancer.PickResult, bool) {
	ctx, cancel := context.WithDeadline(c.t.Context(), deadline)
	c.t.Cleanup(cancel)
	for ctx.Err() == nil {
		c.mu.Lock()
		p := c.state.Picker
		c.mu.Unlock()
		if res, err := p.Pick(balancer.PickInfo{Ctx: ctx}); err == nil {
			return res, true
		}
		time.Sleep(time.Millisecond)
	}
	return balancer.PickResult{}, false
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

package leastconnbalancer_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// Below weighted_target each new picker may draw another child for an RPC that waits.
// It waits in none of those that it was drawn to before once it is served, and no room
// is kept for it where it is not: 24 streams share 8 places to the last.
func TestStreamsBelowWeightedTarget(t *testing.T) {
	for name, key := range map[string]string{"one ledger": "", "two ledgers": "KEY"} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			ns := e.nodes("a", "b", "c", "d")
			localityPolicy.byName = map[string][]resolver.Endpoint{
				"here": leastconntest.Endpoints(ns[:2]...), "there": leastconntest.Endpoints(ns[2:]...),
			}
			defer func() { localityPolicy.byName = nil }()
			target := func(name string) string {
				return `"` + name + `":{"weight":1,"childPolicy":[{"least_conn_in_locality":{"maxInFlight":2,"resourceKey":"` + strings.Replace(key, "KEY", name, 1) + `"}}]}`
			}
			config := `{"loadBalancingConfig":[{"weighted_target_experimental":{"targets":{` + target("here") + "," + target("there") + `}}}]}`
			c := e.unused(leastconntest.ChannelConfig{ServiceConfig: config, Endpoints: leastconntest.Endpoints(ns...)})
			c.Connect()
			e.wait("all are connected", func() bool { return ns[0].Conns()+ns[1].Conns()+ns[2].Conns()+ns[3].Conns() == 4 })
			opened := make(chan *leastconntest.Stream, 24)
			for range 24 {
				go func() {
					if s, err := c.Open(e.ctx); err == nil {
						opened <- s
					}
				}()
			}
			var open []*leastconntest.Stream
			for n := range 24 {
				if len(open) == 8 || n == 23 {
					require.NoError(t, open[0].End())
					open = open[1:]
				}
				select {
				case s := <-opened:
					open = append(open, s)
				case <-time.After(patience):
					require.Fail(t, "streams hang", "%d are open, %d were", len(open), n)
				}
			}
			require.NoError(t, leastconntest.EndAll(open))
		})
	}
}

// An RPC between two attempts waits for no room: others have it at once.
func TestNoRoomForAnRPCInBackoff(t *testing.T) {
	e := parallelEnv(t)
	n := e.nodes("a")[0]
	cfg := quickly()
	cfg.ServiceConfig = `{"loadBalancingConfig":[{"least_conn":{"maxInFlight":1,"failurePenalty":"0s"}}],
		"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":3,"initialBackoff":"3600s","maxBackoff":"3600s",
		"backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`
	c := e.dialWith(cfg, n)
	held, _ := c.hold(1)
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	var inBackoff []<-chan result
	for range 50 {
		inBackoff = append(inBackoff, e.async(func() (string, error) { return c.Unary(ctx) }))
	}
	c.waits(50)
	n.Stop()
	require.Equal(t, codes.Unavailable, codeOf(held[0].Wait()))
	e.wait("their attempts have ended", func() bool { return c.snapshot().Waiting == 0 })
	require.NoError(t, n.Restart())
	node, err := c.Unary(e.within(patience), grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Equal(t, "a", node)
	e.wait("nobody waits", func() bool { s := c.snapshot(); return s.Waiting+s.Granted+s.InFlight == 0 })
	cancel()
	for _, rpc := range inBackoff {
		<-rpc
	}
}

// A later attempt waits for a node that it has not tried, full as it is, instead of
// trying the one that fails again.
func TestRetryWaitsForTheFullNode(t *testing.T) {
	for name, config := range map[string]string{"cap": `"maxInFlight":1`, "server's limit": `"streamLimit":"server"`} {
		for _, k := range twoKinds {
			t.Run(name+"/"+k.String(), func(t *testing.T) {
				e := parallelEnv(t)
				ns := e.nodes("a", "b")
				if name != "cap" {
					ns[0].SetStreamLimit(1)
				}
				cfg := retrying(4)
				cfg.ServiceConfig = strings.Replace(cfg.ServiceConfig, `"failurePenalty":"0s"`, `"failurePenalty":"60s",`+config, 1)
				c := e.dialWith(cfg, ns...)
				held := c.load(ns, 1, 0)
				failing(ns[1])
				before := ns[1].Started()
				rpc := e.async(func() (string, error) {
					if k == leastconntest.Unary {
						return c.Unary(e.ctx)
					}
					s, err := c.Open(e.ctx)
					if err != nil {
						return "", err
					}
					return s.Node(), s.End()
				})
				c.waits(1)
				require.NoError(t, held[0].End())
				require.Equal(t, result{node: "a"}, <-rpc)
				require.Equal(t, 1, ns[1].Started()-before, "attempts at b")
			})
		}
	}
}

// With the interceptors the error of an RPC whose deadline ends its wait for room says
// what it waited for, and how long. One that waits for something else keeps its own.
func TestDeadlineTextOfAWait(t *testing.T) {
	e := parallelEnv(t)
	n := e.nodes("a")[0]
	cfg := guarded(leastconnbalancer.Config{MaxInFlight: 1})
	cfg.DialOptions = []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(leastconnbalancer.UnaryClientInterceptor()),
		grpc.WithChainStreamInterceptor(leastconnbalancer.StreamClientInterceptor()),
	}
	c := e.dialWith(cfg, n)
	held, _ := c.hold(1)
	queued := func() uint64 { return c.snapshot().EndpointSets[0].Queued }
	for _, k := range twoKinds {
		var st *status.Status
		before := queued()
		for deadline := 150 * time.Millisecond; queued() == before; deadline *= 2 { // it may be over before it waits
			var err error
			if ctx := e.within(deadline); k == leastconntest.Unary {
				_, err = c.Unary(ctx)
			} else {
				_, err = c.Open(ctx)
			}
			st = status.Convert(err)
			require.Equal(t, codes.DeadlineExceeded, st.Code(), k)
		}
		require.Regexp(t, `^least_conn: the deadline was exceeded after [\d.]+m?s of waiting for room: the endpoints that the RPC may use are full \(maxInFlight, or the servers' limits of streams\)$`, st.Message(), k)
	}
	require.NoError(t, held[0].End())
	n.HoldUnary(true)
	_, err := c.Unary(e.within(50 * time.Millisecond))
	require.Equal(t, codes.DeadlineExceeded, codeOf(err))
	require.NotContains(t, err.Error(), "room")
	n.ReleaseUnary()
}

// A balancer that closes when RPCs that wait have just been given room wakes nobody.
func TestRoomAtTheLastMoment(t *testing.T) {
	for range 50 { // what is first of the two is chance
		synctest.Test(t, func(t *testing.T) {
			c := newFakeConn(t)
			c.build(balancer.Get(leastconnbalancer.Name))
			c.list(`{"maxInFlight":1}`, "a")
			c.connect("a")
			_, done := c.pick()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := c.picker().Pick(balancer.PickInfo{Ctx: ctx})
			require.Equal(t, balancer.ErrNoSubConnAvailable, err)
			synctest.Wait()
			done(balancer.DoneInfo{})
			c.balancer.Close()
			synctest.Wait()
		})
	}
}

package leastconnbalancer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// retrying is a channel whose RPCs make up to so many attempts, without penalty.
func retrying(attempts int) leastconntest.ChannelConfig {
	cfg := quickly()
	cfg.ServiceConfig = fmt.Sprintf(`{"loadBalancingConfig":[{"least_conn":{"failurePenalty":"0s"}}],"methodConfig":[{"name":[{}],"retryPolicy":{
		"maxAttempts":%d,"initialBackoff":"0.001s","maxBackoff":"0.001s","backoffMultiplier":1,
		"retryableStatusCodes":["UNAVAILABLE","RESOURCE_EXHAUSTED"]}}]}`, attempts)
	cfg.DialOptions = append(cfg.DialOptions, grpc.WithMaxCallAttempts(attempts))
	return cfg
}

// intercepted adds the policy's interceptors, with a user's own inside.
func intercepted(cfg leastconntest.ChannelConfig, inside ...grpc.UnaryClientInterceptor) leastconntest.ChannelConfig {
	unary := append([]grpc.UnaryClientInterceptor{leastconnbalancer.UnaryClientInterceptor()}, inside...)
	cfg.DialOptions = append(cfg.DialOptions,
		grpc.WithChainUnaryInterceptor(unary...),
		grpc.WithChainStreamInterceptor(leastconnbalancer.StreamClientInterceptor()))
	return cfg
}

// failed makes an RPC that is to fail as the nodes do.
func (c *channel) failed() {
	c.env.Helper()
	require.ErrorContains(c.env, c.unavailable(), "node fails on request")
}

// Each try goes to the next best node, level by level, and once all were tried
// they are tried again, the least loaded first. Each is one pick and one Done.
func TestEachTryGoesToTheNextBestNode(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int][]int{
		2: {1, 1, 0, 0}, 3: {1, 1, 1, 0}, 4: {1, 1, 1, 1}, 5: {2, 1, 1, 1}, 9: {3, 2, 2, 2},
	} {
		t.Run(strconv.Itoa(attempts), func(t *testing.T) {
			e := parallelEnv(t)
			ns := e.nodes("a", "b", "c", "d")
			p := &recordingPolicy{}
			cfg := retrying(attempts)
			cfg.Endpoints = levels(ns[:3], ns[3:])
			c := e.dialRecorded(p, cfg, ns...)
			held := c.load(ns[:3], 0, 1, 2)
			before, picks, dones := started(ns), p.picks.Load(), p.dones.Load()
			failing(ns...)
			c.failed()
			require.Equal(t, want, started(ns, before...), "attempts by node")
			require.EqualValues(t, attempts, p.picks.Load()-picks)
			require.EqualValues(t, attempts, p.dones.Load()-dones)
			require.NoError(t, leastconntest.PingAll(held))
			c.counts(ns, 0, 1, 2, 0)
			ns[1].SetFail(codes.OK)
			before = started(ns)
			require.Equal(t, "b", c.unary())
			require.Equal(t, []int{1, 1, 0, 0}, started(ns, before...))
		})
	}
}

// A single node is retried, since it is the only one there is.
func TestSingleNodeIsRetried(t *testing.T) {
	e := parallelEnv(t)
	n := e.nodes("a")[0]
	p := &recordingPolicy{}
	c := e.dialRecorded(p, retrying(4), n)
	failing(n)
	c.failed()
	require.Equal(t, 4, n.Started())
	require.EqualValues(t, 4, p.dones.Load())
	require.Zero(t, c.snapshot().InFlight)
}

// A later attempt goes to an untried node with room, on any level; when there is
// none, it starts over rather than wait. One that finds all full is not retried.
func TestRetryFindsRoom(t *testing.T) {
	e := parallelEnv(t)
	ns := e.nodes("a", "b", "c")
	list := levels(ns[:2], ns[2:])
	for i := range list {
		list[i] = lcresolver.SetMaxInFlight(list[i], 2)
	}
	cfg := retrying(2)
	cfg.Endpoints = list
	p := &recordingPolicy{}
	c := e.dialRecorded(p, cfg, ns...)
	c.load(ns[:2], 1, 2)
	failing(ns[0])
	require.Equal(t, "c", c.unary(), "b is full")
	_, by := c.hold(2)
	require.Equal(t, map[string]int{"c": 2}, by)
	before := started(ns)
	c.failed()
	require.Equal(t, []int{2, 0, 0}, started(ns, before...), "attempts by node")
	ns[0].SetFail(codes.OK)
	c.hold(1)
	require.NoError(t, c.UpdateConfig(below(leastconnbalancer.Config{OnFull: leastconnbalancer.OnFullFail}.ServiceConfig()), list...))
	picks := p.picks.Load()
	c.noRoom()
	require.Equal(t, picks, p.picks.Load())
}

// attemptLog is which nodes saw the attempts of an RPC, by its id.
type attemptLog struct {
	mu   sync.Mutex
	seen map[string][]string
}

// server lets a node note each attempt and fail most of them.
func (a *attemptLog) server(node string) grpc.ServerOption {
	return grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		for _, id := range md.Get("rpc") {
			a.mu.Lock()
			a.seen[id] = append(a.seen[id], node)
			a.mu.Unlock()
		}
		if rand.IntN(10) < 7 {
			return nil, status.Error(codes.Unavailable, "most fail")
		}
		return handler(ctx, req)
	})
}

// Picks, attempts at the servers and Dones are the same in number; no attempt of
// an RPC goes to a node that an earlier one has been at, unless caps make it start
// over; no cap is exceeded; a second call of a Done changes nothing.
func TestRetriesOverNodesThatFailAtRandom(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit uint32
		twice bool
	}{"without caps": {0, false}, "under caps": {2, false}, "Done twice": {0, true}} {
		t.Run(name, func(t *testing.T) {
			e := parallelEnv(t)
			log := &attemptLog{seen: map[string][]string{}}
			cfg, p := retrying(4), &recordingPolicy{twice: tt.twice}
			var ns []*leastconntest.Node
			for _, name := range names(4) {
				n := e.node(name, log.server(name))
				ns = append(ns, n)
				cfg.Endpoints = append(cfg.Endpoints, lcresolver.SetMaxInFlight(n.Endpoint(), tt.limit))
			}
			c := e.dialRecorded(p, cfg, ns...)
			check := valid
			if tt.limit > 0 {
				check = atMost(int64(tt.limit))
			}
			stop := c.watch(check)
			var callers sync.WaitGroup
			for i := range 20 {
				callers.Go(func() {
					for j := range 10 {
						_, err := c.Unary(metadata.AppendToOutgoingContext(e.ctx, "rpc", fmt.Sprint(i, "-", j)))
						if err != nil {
							assert.ErrorContains(t, err, "most fail")
						}
					}
				})
			}
			callers.Wait()
			stop()
			require.Len(t, log.seen, 200, "RPCs")
			attempts := 0
			for id, nodes := range log.seen {
				if tt.limit == 0 {
					require.Len(t, tally(nodes), len(nodes), "RPC %s was at nodes %v", id, nodes)
				}
				attempts += len(nodes)
			}
			require.Greater(t, attempts, 300, "most RPCs were retried")
			require.EqualValues(t, attempts, p.picks.Load(), "picks")
			require.EqualValues(t, attempts, p.dones.Load(), "Dones")
			require.Equal(t, tt.limit > 0, c.snapshot().EndpointSets[0].Queued > 0, "RPCs that waited")
			c.waits(0)
			c.counts(ns, 0, 0, 0, 0)
			e.served(ns, 0, 0, 0, 0)
		})
	}
}

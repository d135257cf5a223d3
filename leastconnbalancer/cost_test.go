package leastconnbalancer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// units waits until the channel's endpoints have so many units in flight.
func (c *channel) units(want ...int64) {
	c.env.Helper()
	var got []int64
	c.env.wait(fmt.Sprintf("units are %v", want), func() bool {
		got = nil
		for _, n := range c.snapshot().Endpoints {
			got = append(got, n.Units)
		}
		return fmt.Sprint(got) == fmt.Sprint(want) || len(want) == 2 && got[0] == want[1] && got[1] == want[0]
	})
}

// A long prompt takes the place of many short ones, and less as it says so.
func TestCostsOfRealRPCs(t *testing.T) {
	e := parallelEnv(t)
	c := e.dial(e.nodes("a", "b")...)
	ctx := leastconnbalancer.WithCost(e.ctx, 5)
	long, err := c.Open(ctx)
	require.NoError(t, err)
	c.units(5, 0)
	_, by := c.hold(5)
	require.Equal(t, 5, by[map[string]string{"a": "b", "b": "a"}[long.Node()]])
	second, err := c.Open(ctx)
	require.NoError(t, err)
	c.units(6, 5)
	require.NoError(t, second.End())
	require.NoError(t, leastconnbalancer.SetCost(ctx, 2))
	c.units(2, 5)
	_, by = c.hold(3)
	require.Equal(t, map[string]int{long.Node(): 3}, by)
	require.NoError(t, leastconnbalancer.SetCost(ctx, 1000))
	c.units(1003, 5)
	require.NoError(t, long.End())
	c.units(3, 5)
	require.NoError(t, leastconnbalancer.SetCost(ctx, 2000), "it has ended")
	c.units(3, 5)
}

// An RPC that gRPC tries again has its cost at each attempt, and counts once.
func TestCostOfRetries(t *testing.T) {
	e := parallelEnv(t)
	var c *channel
	seen := make(chan int64, 10)
	failing := grpc.ChainUnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		sum := int64(0)
		for _, n := range c.snapshot().Endpoints {
			sum += n.Units
		}
		seen <- sum
		return nil, status.Error(codes.Unavailable, "try again")
	})
	c = e.dialWith(retrying(3), e.nodesWith(leastconntest.Options{ServerOptions: []grpc.ServerOption{failing}}, "a", "b")...)
	ctx := leastconnbalancer.WithCost(e.ctx, 70)
	_, err := c.Unary(ctx)
	require.Equal(t, codes.Unavailable, status.Code(err))
	_, err = c.Unary(ctx)
	require.Equal(t, codes.Unavailable, status.Code(err))
	close(seen)
	var got []int64
	for sum := range seen {
		got = append(got, sum)
	}
	require.Equal(t, []int64{70, 70, 70, 1, 1, 1}, got)
}

func TestCostsOutOfBounds(t *testing.T) {
	e := newEnv(t)
	c := e.dial(e.nodes("a")...)
	for units, want := range map[int]int64{0: 1, -5: 1, 1_000_001: 1_000_000} {
		s, err := c.Open(leastconnbalancer.WithCost(e.ctx, units))
		require.NoError(t, err)
		c.units(want)
		require.NoError(t, s.End())
	}
	ctx := leastconnbalancer.WithCost(e.ctx, 5)
	for units, want := range map[int]string{
		0:         "least_conn: SetCost: units 0: want 1 to 1000000",
		1_000_001: "least_conn: SetCost: units 1000001: want 1 to 1000000",
	} {
		require.EqualError(t, leastconnbalancer.SetCost(ctx, units), want)
	}
	const none = "least_conn: SetCost: the context has no cost: want one of WithCost, or derived from it"
	require.EqualError(t, leastconnbalancer.SetCost(context.Background(), 5), none)
	//lint:ignore SA1012 nothing panics
	require.EqualError(t, leastconnbalancer.SetCost(nil, 5), none)
}

func logCosts(_ *env, phase func(string)) {
	phase("costs")
	for _, units := range []int{1, 1_000_000, 0, -1, 1_000_001, 2_000_000} {
		leastconnbalancer.WithCost(context.Background(), units)
	}
}

// A cost out of bounds is warned of, once of each bound.
func TestLogOfCosts(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string][]string{"costs": {
		"WARNING WithCost: units 0: want 1 to 1000000; RPCs with such costs count 1",
		"WARNING WithCost: units 1000001: want 1 to 1000000; RPCs with such costs count 1000000",
	}}, logged(t, "costs", atInfo...))
}

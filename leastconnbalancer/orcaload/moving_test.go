package orcaload

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/serverload"
)

// loaded starts a node that reports what it has in flight.
func loaded(t *testing.T) *server {
	load := serverload.New(serverload.Options{})
	n, err := leastconntest.StartNode(leastconntest.Options{
		ServerOptions: []grpc.ServerOption{grpc.StatsHandler(load)},
		Register:      func(r grpc.ServiceRegistrar) { require.NoError(t, load.Register(r)) },
	})
	require.NoError(t, err)
	t.Cleanup(n.Close)
	return &server{Node: n}
}

// hold is a stream that moves when it is told to.
func hold(ctx context.Context, c *leastconntest.Channel, opened func()) error {
	return leastconnbalancer.Run(ctx, func(ctx context.Context, moved <-chan struct{}) error {
		stream, err := c.Client().FullDuplexCall(ctx)
		if err != nil {
			return err
		}
		if _, err := stream.Recv(); err != nil { // that the node has it
			return err
		}
		opened()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		if _, err := stream.Recv(); err != io.EOF {
			return fmt.Errorf("the stream should have ended, not %w", err)
		}
		return nil
	})
}

// Sessions of processes that have one each leave a server that others fill. Channels with keys of
// their own stand for processes: each of them sees one stream in flight, wherever it is.
func TestSessionsLeaveServerThatOthersFill(t *testing.T) {
	const sessions, others = 12, 60
	servers := []*server{loaded(t), loaded(t), loaded(t)}
	ctx, cancel := context.WithCancel(t.Context())
	var opening, gone sync.WaitGroup
	defer gone.Wait()
	defer cancel()
	for i := range sessions {
		c := dial(t, t.Name(), fmt.Sprintf(`{"loadBalancingConfig":[{"least_conn":{
			"resourceKey":"%s %d","reports":{"interval":"100ms"},"rebalance":{"minAge":"0s"}}}]}`, t.Name(), i), servers...)
		require.NoError(t, c.WaitServed(t.Context(), servers[0].Node, servers[1].Node, servers[2].Node))
		opening.Add(1)
		opened := sync.OnceFunc(opening.Done)
		gone.Go(func() {
			if err := hold(ctx, c, opened); ctx.Err() == nil {
				t.Errorf("a session has ended: %v", err)
			}
			opened()
		})
	}
	opening.Wait()
	filled := servers[0]
	for _, s := range servers {
		if s.HeldStreams() > filled.HeldStreams() {
			filled = s
		}
	}
	require.Positive(t, filled.HeldStreams())
	other := dial(t, t.Name()+" of others", config, filled)
	_, err := other.OpenN(t.Context(), others)
	require.NoError(t, err)
	wait(t, "sessions leave", func() bool { return filled.HeldStreams() == others })
	wait(t, "all are elsewhere", func() bool {
		return servers[0].HeldStreams()+servers[1].HeldStreams()+servers[2].HeldStreams() == sessions+others
	})
}

package integration

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// sessions are long streams that go on elsewhere when they should move.
type sessions struct {
	*env
	told    atomic.Int64
	holding sync.WaitGroup
	failed  chan error
}

// sessions opens n of them. They end with the test.
func (e *env) sessions(n int) *sessions {
	ctx, cancel := context.WithCancel(e.ctx)
	s := &sessions{env: e, failed: make(chan error, n)}
	e.Cleanup(s.holding.Wait)
	e.Cleanup(cancel)
	for range n {
		s.holding.Go(func() {
			err := leastconnbalancer.Run(ctx, s.hold)
			if ctx.Err() == nil {
				s.failed <- fmt.Errorf("a stream has ended: %v", err)
			}
		})
	}
	return s
}

// hold holds one stream until it should move.
func (s *sessions) hold(ctx context.Context, moved <-chan struct{}) error {
	stream, err := grpc_testing.NewTestServiceClient(s.conn).FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-moved:
			s.told.Add(1)
			_ = stream.CloseSend() // what comes of it is received below
		case <-ctx.Done():
		}
	}()
	for err == nil {
		_, err = stream.Recv()
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// live waits until nodes hold so many, of which none has failed.
func (s *sessions) live(ns []*leastconntest.Node, want ...int) {
	s.Helper()
	for i, n := range ns {
		require.NoError(s, n.WaitLive(s.ctx, want[i]), n.Name())
	}
	require.Empty(s, s.failed)
}

package integration

import (
	"context"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// traffic is RPCs without a pause, from several goroutines.
type traffic struct {
	mix   *mix
	lanes int
	ctx   context.Context // over when no more RPCs are to start
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu     sync.Mutex
	failed map[codes.Code]error // one of each code
}

func (m *mix) traffic(lanes int) *traffic {
	tr := &traffic{mix: m, lanes: lanes, failed: map[codes.Code]error{}}
	tr.ctx, tr.stop = context.WithCancel(m.ctx)
	m.Cleanup(tr.stop)
	for range lanes {
		tr.ended.Go(func() {
			for i := 0; tr.ctx.Err() == nil; i++ {
				if err := tr.rpc(i % 3); err != nil {
					tr.mu.Lock()
					tr.failed[status.Code(err)] = err
					tr.mu.Unlock()
				}
			}
		})
	}
	return tr
}

// rpc makes an RPC: of kind 0 a unary one, of 1 a stream that is cancelled, of 2
// a stream to its end.
func (tr *traffic) rpc(kind int) error {
	ctx, cancel := context.WithCancel(tr.mix.ctx)
	defer cancel()
	if kind == 0 {
		_, err := tr.mix.Unary(ctx)
		return err
	}
	s, err := tr.mix.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Cancel()
	for range 3 {
		if err := s.Ping(); err != nil {
			return err
		}
	}
	if kind == 1 {
		return nil
	}
	return s.End()
}

// until waits for a condition. Meanwhile no more RPCs are counted than there
// can be, one for each lane.
func (tr *traffic) until(what string, condition func() bool) {
	tr.mix.Helper()
	wait(tr.mix.T, what, func() bool {
		inFlight := tr.mix.snapshot().InFlight
		require.GreaterOrEqual(tr.mix, inFlight, int64(0))
		require.LessOrEqual(tr.mix, inFlight, int64(tr.lanes))
		return condition()
	})
}

// through waits until so many more RPCs have reached the node.
func (tr *traffic) through(n *leastconntest.Node, more int) {
	tr.mix.Helper()
	before := n.Started()
	tr.until("RPCs on "+n.Name(), func() bool { return n.Started() >= before+more })
}

// end stops the traffic and returns the errors.
func (tr *traffic) end() map[codes.Code]error {
	tr.stop()
	tr.ended.Wait()
	return tr.failed
}

// While a proxy reloads again and again, no RPC fails and no count stays.
func TestProxyReloadsUnderTraffic(t *testing.T) {
	eachProxy(t, func(t *testing.T, k proxyKind) {
		ns := startNodes(t, "near", "far")
		p := startProxy(t, k, settings{}, ns[1])
		m := dialMix(t, ns[0], p)
		tr := m.traffic(8)
		for range 3 {
			tr.through(ns[1], 50)
			old, _ := p.reload()
			tr.through(ns[1], 50)
			p.waitGone(old)
		}
		require.Empty(t, tr.end())
		m.counts(0, 0)
	})
}

// While the workers of a proxy are killed, RPCs may fail, and no count stays.
func TestNginxDiesUnderTraffic(t *testing.T) {
	ns := startNodes(t, "near", "far")
	p := startProxy(t, nginx, settings{}, ns[1])
	m := dialMix(t, ns[0], p)
	tr := m.traffic(8)
	for range 5 {
		tr.through(ns[1], 50)
		p.signalWorker(syscall.SIGKILL)
	}
	for code, err := range tr.end() {
		require.Equal(t, codes.Unavailable, code, "%v", err)
	}
	m.counts(0, 0)
}

package state_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// streams are long streams of an environment's sessions.
type streams struct {
	*env
	onC     *state.Connection // of c, where a test has it
	first   *state.ReadySet   // that RPCs are opened in; by default the one of the environment
	before  time.Duration     // how long a stream that was asked takes to move
	overlap bool              // the next RPC begins before the old one ends
	fails   string            // endpoint that fails each stream at once
	deaf    bool              // nobody listens
	life    time.Duration     // mean life of a stream, which begins anew then; 0: it does not end
	counts  func(addr string, by int)
	cost    func() int64 // of a stream; nil: they have none
	costs   []*state.Cost

	mu    sync.Mutex
	asked int
	on    map[string]int // live RPCs by address
	wg    sync.WaitGroup
	stop  context.CancelFunc
	ctx   context.Context
}

func (e *env) streams() *streams {
	s := &streams{env: e, first: e.readySet, on: map[string]int{}}
	s.ctx, s.stop = context.WithCancel(e.Context())
	e.endpointSet.SetRebalance(state.Rebalance{PerSecond: 1000, MinAge: 0, DrainWithin: time.Second})
	return s
}

// end ends all streams.
func (s *streams) end() {
	s.stop()
	s.wg.Wait()
	require.NoError(s, s.ledger.Check())
	require.Zero(s, s.ledger.Snapshot().InFlight)
}

// begin begins some streams.
func (s *streams) begin(n int) {
	s.Helper()
	for range n {
		st := s.stream()
		rpc, ok := s.next(st)
		require.True(s, ok)
		s.wg.Go(func() { s.serve(st, rpc) })
	}
}

// stream is one of the application, with the context of all its RPCs.
type stream struct {
	*state.Session
	ctx context.Context
}

func (s *streams) stream() stream {
	st := stream{&state.Session{}, s.ctx}
	if s.cost != nil {
		st.ctx = state.WithCost(st.ctx, s.cost())
		s.costs = append(s.costs, state.CostOf(st.ctx))
	}
	return st
}

type streamRPC struct {
	lease state.Lease
	addr  string
	moved <-chan struct{}
	end   context.CancelFunc
}

func (s *streams) next(st stream) (streamRPC, bool) {
	ctx, cancel := context.WithCancel(st.ctx)
	ctx, moved := st.Next(ctx)
	lease, value, outcome := s.endpointSet.AcquireOrQueue(ctx, nil, s.first)
	if outcome != state.Chosen {
		cancel()
		return streamRPC{}, false
	}
	s.count(value.(string), 1)
	return streamRPC{lease, value.(string), moved, cancel}, true
}

func (s *streams) count(addr string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on[addr] += by
	if s.counts != nil {
		s.counts(addr, by)
	}
}

func (s *streams) release(r streamRPC) {
	r.lease.Release()
	r.end()
	s.count(r.addr, -1)
}

// serve is one stream, over all its RPCs.
func (s *streams) serve(st stream, r streamRPC) {
	for {
		ends := make(<-chan time.Time)
		if s.life > 0 {
			ends = time.After(time.Duration(rand.ExpFloat64() * float64(s.life)))
		}
		select {
		case <-s.ctx.Done():
			s.release(r)
			return
		case <-ends:
			s.release(r)
			st = s.stream()
			r, _ = s.next(st)
			continue
		case <-r.moved:
		}
		s.mu.Lock()
		s.asked++
		deaf := s.deaf
		s.mu.Unlock()
		if deaf {
			<-s.ctx.Done()
			s.release(r)
			return
		}
		time.Sleep(s.before)
		if !s.overlap {
			s.release(r)
		}
		next, ok := s.next(st)
		if ok && next.addr == s.fails {
			next.lease.Fail()
			next.end()
			s.count(next.addr, -1)
			<-s.ctx.Done()
			s.release(r)
			return
		}
		if s.overlap {
			s.release(r)
		}
		if !ok {
			return
		}
		r = next
	}
}

// told returns how many streams were asked.
func (s *streams) told() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// at returns how many streams an endpoint has.
func (s *streams) at(addr string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on[addr]
}

// want asserts how many streams there are by endpoint, that so many were asked, and
// that nothing is under way.
func (s *streams) want(told int, on map[string]int) {
	s.Helper()
	require.NoError(s, s.ledger.Check())
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(s, told, s.asked, "asked")
	for addr, n := range on {
		require.Equal(s, n, s.on[addr], "on %s of %v", addr, s.on)
	}
	snapshot := s.ledger.Snapshot()
	for _, n := range snapshot.Endpoints {
		require.EqualValues(s, s.on[n.Address()], n.InFlight, n.Address())
	}
}

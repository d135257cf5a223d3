package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// countCheck sees each RPC attempt that is sent and holds the policy's counts against it. It implements stats.Handler.
type countCheck struct {
	mu   sync.Mutex
	sent map[string]int // attempts by address
	errs []error
}

func newCountCheck() *countCheck { return &countCheck{sent: map[string]int{}} }

// HandleRPC sees an attempt's header on its way, which is before the RPC can end: the policy must count it where it goes.
func (w *countCheck) HandleRPC(_ context.Context, s stats.RPCStats) {
	header, ok := s.(*stats.OutHeader)
	if !ok {
		return
	}
	addr := header.RemoteAddr.String()
	counted := inFlight(leastconnbalancer.Snapshots(), addr)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent[addr]++
	if counted < 1 {
		w.errs = append(w.errs, fmt.Errorf("%s went to %s, where least_conn counts %d in flight", header.FullMethod, addr, counted))
	}
}

// inFlight is what ledgers count at an address.
func inFlight(ledgers []leastconnbalancer.Snapshot, addr string) (sum int64) {
	for _, l := range ledgers {
		for _, n := range l.Endpoints {
			if slices.Contains(n.Addresses, addr) {
				sum += n.InFlight
			}
		}
	}
	return sum
}

// result returns how many attempts were sent, by address, and what was wrong with them.
func (w *countCheck) result() (map[string]int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.sent), errors.Join(w.errs...)
}

// TagRPC changes nothing.
func (w *countCheck) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn changes nothing.
func (w *countCheck) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (w *countCheck) HandleConn(context.Context, stats.ConnStats) {}

package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/stats"
)

// location is where an RPC is counted: a node of a resource key, named by its id or by the server that its addresses are
// of. With no node it is the sum of the key. RPCs of channels that have moved to another key are counted in either
// ledger; the key stands for both.
type location struct{ key, node string }

// attempts is what gRPC says of the attempts of RPCs, as opposed to what the policy counts: it says that one begins
// before it is picked for, and that it ends after its end has been told to the policy.
type attempts struct {
	mu          sync.Mutex
	open        map[*attempt]struct{}
	begun       map[string]int // ever, by resource key
	retries     int            // as the service config has them
	transparent int            // retries of what no server has seen
	unconnected int            // attempts that ended without a connection
	unused      int            // attempts that gRPC began and dropped before it picked for them
	conns       map[conn]bool  // those that channels have
}

// attempt is one attempt of an RPC. The mutex of attempts guards what changes.
type attempt struct {
	key       string
	rpc       *rpc // nil if it is none of the plan
	connected bool // it has a connection, to
	location  location
	member    string
	conn      conn
	ended     time.Time
}

// rpc is what the attempts of one RPC have in common. There is one at a time.
type rpc struct {
	attempts  int
	last      *attempt
	abandoned bool
}

func newAttempts() *attempts {
	return &attempts{open: map[*attempt]struct{}{}, begun: map[string]int{}, conns: map[conn]bool{}}
}

type rpcKey struct{}

// withRPC returns a context for an RPC whose attempts are to be known.
func withRPC(ctx context.Context) (context.Context, *rpc) {
	r := &rpc{}
	return context.WithValue(ctx, rpcKey{}, r), r
}

// abandon notes that the server has been told to end the RPC, and that the client will not notice.
func (a *attempts) abandon(r *rpc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.abandoned = true
}

// mark is what is open at one moment.
type mark struct {
	connected   map[location][]*attempt // those that have a connection, also by key alone
	unconnected map[string]int          // those that have none yet, by key
	begun       map[string]int          // ever, by key
	abandoned   map[string]int          // of the placed ones, by member
	streams     map[conn]int            // the placed ones, of each connection that there is
}

func (a *attempts) mark() mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := mark{map[location][]*attempt{}, map[string]int{}, maps.Clone(a.begun), map[string]int{}, map[conn]int{}}
	for c := range a.conns {
		m.streams[c] = 0
	}
	for at := range a.open {
		if !at.connected {
			m.unconnected[at.key]++
			continue
		}
		if a.conns[at.conn] {
			m.streams[at.conn]++
		}
		sum := location{key: at.key}
		m.connected[at.location] = append(m.connected[at.location], at)
		m.connected[sum] = append(m.connected[sum], at)
		if at.rpc != nil && at.rpc.abandoned {
			m.abandoned[at.member]++
		}
	}
	return m
}

// count is how many are open.
func (a *attempts) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open)
}

// String says how many there were.
func (a *attempts) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := 0
	for _, n := range a.begun {
		all += n
	}
	return fmt.Sprintf("%d attempts; %d configured retries, %d transparent ones; %d without a connection, %d not even picked for",
		all, a.retries, a.transparent, a.unconnected, a.unused)
}

// openAfter is how many of them were open at that moment, which has passed.
func (a *attempts) openAfter(of []*attempt, moment time.Time) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	open := 0
	for _, at := range of {
		if at.ended.IsZero() || at.ended.After(moment) {
			open++
		}
	}
	return open
}

// ofTestService leaves out the channel's own RPCs, which are not picked for.
func ofTestService(method string) bool {
	return strings.HasPrefix(method, "/"+grpc_testing.TestService_ServiceDesc.ServiceName+"/")
}

// handler notes the attempts of one channel.
func (a *attempts) handler(c *channel) stats.Handler { return &handler{a, c} }

type handler struct {
	attempts *attempts
	channel  *channel
}

type attemptKey struct{}

// TagRPC implements stats.Handler. gRPC calls it for each attempt.
func (h *handler) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if !ofTestService(info.FullMethodName) {
		return ctx
	}
	r, _ := ctx.Value(rpcKey{}).(*rpc)
	return context.WithValue(ctx, attemptKey{}, &attempt{key: h.channel.spec.policy.ResourceKey, rpc: r})
}

// HandleRPC implements stats.Handler.
func (h *handler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	at, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return
	}
	switch s := s.(type) {
	case *stats.Begin:
		h.attempts.begin(at, s.IsTransparentRetryAttempt)
	case *stats.OutHeader:
		addr := s.RemoteAddr.String()
		h.attempts.sent(at, h.conn(s.RemoteAddr, s.LocalAddr), h.channel.fleet.owner(addr).member)
	case *stats.End:
		h.attempts.end(at, s.EndTime)
	}
}

func (a *attempts) begin(at *attempt, transparent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open[at] = struct{}{}
	a.begun[at.key]++
	if transparent {
		a.transparent++
	} else if at.rpc != nil && at.rpc.attempts > 0 {
		a.retries++
	}
	if at.rpc != nil {
		a.dropLocked(at.rpc)
		at.rpc.attempts++
		at.rpc.last = at
	}
}

// over notes that the call of an RPC has returned.
func (a *attempts) over(r *rpc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropLocked(r)
}

// dropLocked ends the last attempt if gRPC has forgotten it: when an RPC is retried because picking failed, gRPC begins one
// attempt more than it makes, and tells no end of it.
func (a *attempts) dropLocked(r *rpc) {
	if _, open := a.open[r.last]; open && !r.last.connected {
		delete(a.open, r.last)
		r.last.ended = time.Now()
		a.unused++
	}
}

func (a *attempts) sent(at *attempt, over conn, member string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at.connected, at.location, at.member, at.conn = true, over.listing.location, member, over
}

func (a *attempts) end(at *attempt, when time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, at)
	at.ended = when
	if !at.connected {
		a.unconnected++
	}
}

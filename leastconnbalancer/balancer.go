package leastconnbalancer

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/balancer/weightedtarget"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/picker"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
	"github.com/leastconn/grpc-leastconn/state"
)

// leastConn is one balancer of the policy: it owns a pick_first child for each
// endpoint and keeps its endpoint set and ready set of the ledger in step with them. It
// lives from Build to Close; the counts outlive it.
type leastConn struct {
	// Set once.
	cc      balancer.ClientConn
	opts    balancer.BuildOptions
	target  string // canonical, "" without one
	builder balancer.Builder
	meter   *meter

	// Only used in calls of gRPC on the balancer, which never overlap.
	children map[string]*child
	listed   []*child // by index in the last list
	update   uint64   // number of the list
	attrs    *attributes.Attributes
	logged   string // of the configuration

	// mu guards what follows and the children's fields that say so. Children call
	// in with their own locks held, so a child is never called under mu; the
	// ledger's mutex and gRPC's locks behind UpdateState come after it.
	mu       sync.Mutex
	key      string
	set      *state.EndpointSet
	levels   []*level // by priority
	unlinked bool     // a level has no picker yet
	failover time.Duration
	guards   state.Guards
	limit    uint32             // of RPCs in flight, for endpoints that have none of their own; 0: none
	served   *picker.Picker     // whose ready sets have room for RPCs that wait
	waker    *waker             // nil before a cap is used
	failure  error              // what RPCs fail with while there are no children
	failed   *child             // the last taker that reported TRANSIENT_FAILURE
	leaving  map[string]leaving // by key
	warned   string             // of what fails RPCs
	held     bool               // nothing is published while gRPC's call is carried out
	closed   bool
}

// UpdateClientConnState takes up a new list or configuration. What is wrong in
// itself is refused as a whole, and the last good one stays in use.
func (b *leastConn) UpdateClientConnState(s balancer.ClientConnState) error {
	if b.isClosed() {
		return nil
	}
	endpoints := endpointsOf(s.ResolverState)
	if len(endpoints) == 0 {
		return b.empty()
	}
	d, err := b.diff(endpoints)
	if err != nil {
		err = fmt.Errorf("%w: %w", balancer.ErrBadResolverState, err)
		if len(b.children) == 0 {
			b.fail(err)
		}
		return err
	}
	b.hold()
	defer b.publish()
	cfg := configOf(s.BalancerConfig)
	old, key := b.set, b.resourceKey(cfg, s.ResolverState)
	b.use(key, cfg)
	b.logConfig(key, cfg)
	b.meter.watch(b.set, weightedtarget.LocalityFromResolverState(s.ResolverState))
	runtime.KeepAlive(old) // whose last counts the meter has only just recorded
	attrs := pickfirst.EnableHealthListener(resolver.State{Attributes: s.ResolverState.Attributes}).Attributes
	all := !sameAttributes(attrs, b.attrs)
	b.attrs = attrs
	b.apply(d)
	for _, c := range b.listed {
		if all || c.stale {
			c.stale = false
			err = errors.Join(err, c.updateClientConnState())
		}
	}
	return err
}

// resourceKey returns the key of the ledger to use.
func (b *leastConn) resourceKey(cfg *Config, s resolver.State) string {
	if cfg != nil && cfg.ResourceKey != "" {
		return cfg.ResourceKey
	}
	if key := lcresolver.ResourceKey(s); key != "" {
		return key
	}
	return b.target
}

// empty ends all children: RPCs fail until a list comes, streams live on.
func (b *leastConn) empty() error {
	b.hold()
	b.update++
	b.apply(diff{})
	b.fail(errors.New("name resolver produced zero addresses"))
	return balancer.ErrBadResolverState
}

// ResolverError goes to the children, which fail RPCs with it as long as they
// have no connection; before the first list it fails them at once.
func (b *leastConn) ResolverError(err error) {
	if len(b.children) == 0 {
		b.fail(fmt.Errorf("name resolver error: %w", err))
		return
	}
	b.hold()
	for _, c := range b.children {
		c.resolverError(err)
	}
	b.publish()
}

// UpdateSubConnState is not called: the children register listeners.
func (b *leastConn) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle connects the children that are idle.
func (b *leastConn) ExitIdle() {
	b.hold()
	for _, c := range b.children {
		c.exitIdle()
	}
	b.publish()
}

// Close ends the children and takes the members away. The leases of RPCs that
// gRPC ends after it still land. Closing twice changes nothing.
//
// A finished ClientStream that is kept reaches its SubConn, by that the child
// and by that the balancer; so nothing of the ledger stays with either.
func (b *leastConn) Close() {
	b.mu.Lock()
	b.held, b.closed = true, true
	for _, c := range b.children {
		c.detach()
	}
	for _, l := range b.levels {
		l.stop()
		l.picker.Close()
	}
	roster, left, waker := b.set, b.leaving, b.waker
	b.set, b.levels, b.failed, b.leaving, b.served, b.waker = nil, nil, nil, nil, nil, nil
	b.mu.Unlock()
	b.meter.close()
	waker.stop()
	if roster != nil {
		roster.Close()
	}
	for _, c := range b.children {
		c.close()
	}
	for _, l := range left {
		l.end()
	}
	clear(b.children)
	b.listed = nil
}

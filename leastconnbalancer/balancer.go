package leastconnbalancer

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/balancer/weightedtarget"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/cluster"
)

// leastConn is one balancer of the policy: it owns a pick_first child for each
// endpoint and keeps its endpoint set and the levels' ready sets in step with
// them. It lives from Build to Close; the counts outlive it.
type leastConn struct {
	// Set once.
	cc      balancer.ClientConn
	opts    balancer.BuildOptions
	target  string // canonical, "" without one
	builder balancer.Builder
	meter   *meter

	ignoreStreamLimits atomic.Bool // of servers; gRPC's readers ask

	// Only used in calls of gRPC on the balancer, which never overlap.
	children   children
	attrs      *attributes.Attributes
	logged     string   // of the configuration
	keyWarning string   // of the resource key in use
	warned     []string // of the configurations

	// mu guards what follows and the children's fields that say so. Children call
	// in with their own locks held, so a child is never called under mu; the
	// ledger's mutex and gRPC's locks behind UpdateState come after it.
	mu        sync.Mutex
	load      load
	levels    levels
	outage    outage
	wakes     wakes
	inhibited bool // nothing is published while gRPC's call is carried out
	closed    bool
}

// UpdateClientConnState takes up a new list or configuration. What is wrong in
// itself is refused as a whole, and the last good one stays in use.
func (b *leastConn) UpdateClientConnState(s balancer.ClientConnState) error {
	if b.isClosed() {
		return nil
	}
	endpoints := endpointsOf(s.ResolverState)
	if len(endpoints) == 0 {
		return b.removeAll()
	}
	cfg, err := checkedConfigOf(s.BalancerConfig)
	if err != nil {
		return b.refuse(err)
	}
	d, err := b.children.diff(endpoints)
	if err != nil {
		return b.refuse(err)
	}
	return b.inhibitUpdates(func() error { return b.applyUpdate(s, cfg, d) })
}

// refuse says that an update is wrong in itself. RPCs fail by it where there was no good one.
func (b *leastConn) refuse(err error) error {
	err = fmt.Errorf("%w: %w", balancer.ErrBadResolverState, err)
	if len(b.children.byKey) == 0 {
		b.fail(err)
	}
	return err
}

// applyUpdate takes up a list and a configuration that are right in themselves.
func (b *leastConn) applyUpdate(s balancer.ClientConnState, cfg *Config, d diff) (err error) {
	old, interval, key := b.load.set, b.load.reports, b.resourceKey(cfg, s.ResolverState)
	b.applyConfig(key, cfg)
	b.logConfig(key, cfg)
	b.load.set.SetConfig(cfg.inUse(key))
	b.meter.follow(b.load.set, weightedtarget.LocalityFromResolverState(s.ResolverState), cluster.Name(s.ResolverState))
	runtime.KeepAlive(old) // whose last counts the meter has only just recorded
	attrs := pickfirst.EnableHealthListener(resolver.State{Attributes: s.ResolverState.Attributes}).Attributes
	all := !sameAttributes(attrs, b.attrs)
	b.attrs = attrs
	b.applyDiff(d)
	if b.load.set != old || b.load.reports != interval {
		b.updateReports()
	}
	b.warn(cfg)
	for _, c := range b.children.listed {
		if all || c.dirty {
			c.dirty = false
			err = errors.Join(err, c.policy.updateClientConnState(c.endpoint.Endpoint, attrs))
		}
	}
	return err
}

// removeAll ends all children: RPCs fail until a list comes, streams live on.
func (b *leastConn) removeAll() error {
	return b.inhibitUpdates(func() error {
		b.children.update++
		b.applyDiff(diff{})
		b.fail(errors.New("name resolver produced zero addresses"))
		return balancer.ErrBadResolverState
	})
}

// ResolverError goes to the children, which fail RPCs with it as long as they
// have no connection; before the first list it fails them at once.
func (b *leastConn) ResolverError(err error) {
	if len(b.children.byKey) == 0 {
		b.fail(fmt.Errorf("name resolver error: %w", err))
		return
	}
	b.eachChild(func(c *child) { c.policy.resolverError(err) })
}

// UpdateSubConnState is not called: the children register listeners.
func (b *leastConn) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle connects the children that are idle. Before the first list there is nothing to
// publish: RPCs wait for it.
func (b *leastConn) ExitIdle() {
	if len(b.children.byKey) > 0 {
		b.eachChild((*child).exitIdle)
	}
}

// eachChild calls the children's policies and publishes once for all of them.
func (b *leastConn) eachChild(call func(*child)) {
	_ = b.inhibitUpdates(func() error {
		for _, c := range b.children.byKey {
			call(c)
		}
		return nil
	})
}

// Close ends the children and takes the members away. The leases of RPCs that
// gRPC ends after it still land. Closing twice changes nothing.
//
// A finished ClientStream that is kept reaches its SubConn, by that the child
// and by that the balancer; so nothing of the ledger stays with either.
func (b *leastConn) Close() {
	b.mu.Lock()
	b.closed = true
	for _, c := range b.children.byKey {
		c.detachLocked()
	}
	b.levels.closeLocked()
	b.wakes.stop()
	b.wakes.picker = nil // which leads to no ledger any more, and need not be kept
	ld := b.load
	b.load, b.outage.lastFailed = load{}, nil
	b.mu.Unlock()
	b.meter.close()
	ld.waker.stop()
	if ld.set != nil {
		ld.set.Close()
	}
	for _, c := range b.children.byKey {
		c.policy.close()
	}
	b.children = children{}
}

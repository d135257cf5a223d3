package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// channel is a channel of a run. It may be closed and dialled again.
type channel struct {
	spec     channelSpec
	fleet    *fleet
	attempts *attempts
	conn     atomic.Pointer[leastconntest.Channel]

	mu   sync.Mutex // makes changing the list and telling it one step
	list list
}

// open dials the channel for the first time.
func open(spec channelSpec, f *fleet, a *attempts) (*channel, error) {
	c := &channel{spec: spec, fleet: f, attempts: a, list: newList()}
	return c, c.redial()
}

// current is the channel as it was dialled last.
func (c *channel) current() *leastconntest.Channel { return c.conn.Load() }

// change changes the list and tells it.
func (c *channel) change(edit func(*list)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit(&c.list)
	return c.sendListLocked()
}

// sendList tells the list again.
func (c *channel) sendList() error { return c.change(func(*list) {}) }

// sendListLocked has the resolver say the list.
func (c *channel) sendListLocked() error {
	eps := c.list.endpoints(c.spec, c.fleet)
	return c.refused(eps, c.current().Update(eps...))
}

// refused returns err if the list should have been taken. An empty one may be refused; so may be what an idle channel is
// told, since it hears its former list while it wakes.
func (c *channel) refused(eps []resolver.Endpoint, err error) error {
	if err == nil || len(eps) == 0 || c.spec.idle > 0 {
		return nil
	}
	return violated(fmt.Errorf("channel %s refuses its list: %w", c.spec.name, err))
}

// configure has the resolver say the list together with a configuration of the policy. It holds until the next one.
func (c *channel) configure(policy leastconnbalancer.Config) error {
	config, err := c.spec.serviceConfig(policy)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	eps := c.list.endpoints(c.spec, c.fleet)
	return c.refused(eps, c.current().UpdateConfig(config, eps...))
}

// redial closes the channel, if it is open, and dials it anew.
func (c *channel) redial() error {
	config, err := c.spec.serviceConfig(c.spec.policy)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.current(); old != nil {
		if err := old.Close(); err != nil {
			return err
		}
	}
	conn, err := leastconntest.Dial(leastconntest.ChannelConfig{
		Target:        c.spec.name,
		ServiceConfig: config,
		Endpoints:     c.list.endpoints(c.spec, c.fleet),
		DialOptions:   c.dialOptions(),
	})
	if err != nil {
		return err
	}
	c.conn.Store(conn)
	conn.Connect()
	return nil
}

func (c *channel) dialOptions() []grpc.DialOption {
	options := []grpc.DialOption{
		grpc.WithStatsHandler(c.attempts.handler(c)),
		// A server that is back is to be found again within a quiet point.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 300 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}),
	}
	if c.spec.idle > 0 {
		options = append(options, grpc.WithIdleTimeout(c.spec.idle))
	}
	if c.spec.intercept {
		options = append(options,
			grpc.WithChainUnaryInterceptor(leastconnbalancer.UnaryClientInterceptor()),
			grpc.WithChainStreamInterceptor(leastconnbalancer.StreamClientInterceptor()))
	}
	return options
}

// target is what endpoint sets of the channel are called.
func (c *channel) target() string { return c.current().Conn().CanonicalTarget() }

// isIdle reports whether the channel has let go of its list and its connections.
func (c *channel) isIdle() bool {
	return c.spec.idle > 0 && c.current().Conn().GetState() == connectivity.Idle
}

// members returns those that the channel lists now; none while it is idle.
func (c *channel) members() []*member {
	if c.isIdle() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list.listed(c.spec, c.fleet)
}

// location returns where the ledger counts an RPC that is sent to the address.
func (c *channel) location(addr string) location {
	o := c.fleet.owner(addr)
	if c.spec.ids {
		return location{c.spec.policy.ResourceKey, o.member}
	}
	return location{c.spec.policy.ResourceKey, o.server}
}

// close closes the channel; what runs on it ends.
func (c *channel) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current().Close()
}

// list is what a channel's resolver says: by index of the members, how it differs from the list of a good day.
type list struct {
	out        map[int]bool
	weights    map[int]uint32
	priorities map[int]uint32
	dual       map[int]uint32 // of two addresses, and odd if the first is the usual one
	empty      bool
	turn       int // how far it is rotated
}

func newList() list {
	return list{out: map[int]bool{}, weights: map[int]uint32{}, priorities: map[int]uint32{}, dual: map[int]uint32{}}
}

// listed returns the members that the list has now.
func (l *list) listed(spec channelSpec, f *fleet) []*member {
	var all []*member
	if l.empty {
		return nil
	}
	for i := range f.members {
		m := f.members[(i+l.turn)%len(f.members)]
		if m.index%spec.each == 0 && !l.out[m.index] {
			all = append(all, m)
		}
	}
	return all
}

// endpoints returns the list as a resolver gives it.
func (l *list) endpoints(spec channelSpec, f *fleet) []resolver.Endpoint {
	eps := []resolver.Endpoint{}
	for _, m := range l.listed(spec, f) {
		ep := l.endpoint(m)
		if spec.ids {
			ep = lcresolver.SetID(ep, m.name)
		}
		if w, ok := l.weights[m.index]; ok {
			ep = lcresolver.SetWeight(ep, w)
		}
		p, ok := l.priorities[m.index]
		if !ok {
			p = uint32(m.index % spec.levels)
		}
		eps = append(eps, lcresolver.SetPriority(ep, p))
	}
	return eps
}

// endpoint returns the member's endpoint with its addresses.
func (l *list) endpoint(m *member) resolver.Endpoint {
	usual, direct := resolver.Address{Addr: m.current().addr}, resolver.Address{Addr: m.current().direct}
	order, two := l.dual[m.index]
	switch {
	case !two:
		return resolver.Endpoint{Addresses: []resolver.Address{usual}}
	case order%2 == 1:
		return resolver.Endpoint{Addresses: []resolver.Address{usual, direct}}
	default:
		return resolver.Endpoint{Addresses: []resolver.Address{direct, usual}}
	}
}

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

// now is the channel as it was dialled last.
func (c *channel) now() *leastconntest.Channel { return c.conn.Load() }

// change changes the list and tells it.
func (c *channel) change(edit func(*list)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit(&c.list)
	return c.tell()
}

// push tells the list again.
func (c *channel) push() error { return c.change(func(*list) {}) }

// tell has the resolver say the list. Caller holds mu.
func (c *channel) tell() error {
	eps := c.list.endpoints(c.spec, c.fleet)
	return c.refused(eps, c.now().Update(eps...))
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
	return c.refused(eps, c.now().UpdateConfig(config, eps...))
}

// redial closes the channel, if it is open, and dials it anew.
func (c *channel) redial() error {
	config, err := c.spec.serviceConfig(c.spec.policy)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.now(); old != nil {
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

// isIdle reports whether the channel has let go of its list and its connections.
func (c *channel) isIdle() bool {
	return c.spec.idle > 0 && c.now().Conn().GetState() == connectivity.Idle
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

// place returns where the ledger counts an RPC that is sent to the address.
func (c *channel) place(addr string) place {
	o := c.fleet.owner(addr)
	if c.spec.ids {
		return place{c.spec.policy.ResourceKey, o.member}
	}
	return place{c.spec.policy.ResourceKey, o.server}
}

// close closes the channel; what runs on it ends.
func (c *channel) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now().Close()
}

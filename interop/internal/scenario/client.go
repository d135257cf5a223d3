package scenario

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// ClientConfig says how a client of a run is dialled. The zero value is a channel that shares its load with the run's
// other ones.
type ClientConfig struct {
	// Fields are further fields of the service config, each as "name":value in JSON.
	Fields []string
	// Key is the resource key that the resolver gives. Clients with another one do not share their load, and their
	// sessions are judged apart. Default: none, so they share it by their common target.
	Key string
	// Options come after the client's own.
	Options []grpc.DialOption
}

// Client is a channel of a run, with a resolver that lists what it is told to.
type Client struct {
	run     *Run
	channel *leastconntest.Channel // nil if the run had failed before
	dials   *dials
	key     string
	listed  []*Host // by the resolver, at the moment
}

// reconnect lets a host that is back be used soon.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond},
	MinConnectTimeout: leastconntest.DefaultTimeout,
}

// Dial makes a client that lists nothing yet.
func (r *Run) Dial(d ClientConfig) *Client {
	c := &Client{run: r, dials: newDials(), key: d.Key}
	r.step(func(context.Context) (err error) {
		options := []grpc.DialOption{grpc.WithContextDialer(c.dials.dial), grpc.WithConnectParams(reconnect)}
		c.channel, err = r.policy.Dial(leastconntest.ChannelConfig{
			ServiceConfig: r.policy.ServiceConfig(d.Fields...),
			Target:        r.target,
			DialOptions:   append(options, d.Options...),
		})
		if err == nil {
			r.clients = append(r.clients, c)
		}
		return err
	})
	return c
}

// Clients returns the run's open clients, in the order of dialling.
func (r *Run) Clients() []*Client { return slices.Clone(r.clients) }

// List has the resolver list the hosts at slots, and waits until the policy uses them.
func (c *Client) List(slots string) {
	c.run.step(func(ctx context.Context) error {
		hosts, err := c.run.hostsAt(slots)
		if err != nil {
			return err
		}
		c.listed = hosts
		if err := c.channel.UpdateState(c.state()); err != nil {
			return err
		}
		return c.waitInUse(ctx)
	})
}

// Resend has the resolver send the list again, with a change that leaves it the same hosts.
func (c *Client) Resend(change func(*resolver.State)) {
	c.run.step(func(ctx context.Context) error {
		state := c.state()
		change(&state)
		if err := c.channel.UpdateState(state); err != nil {
			return err
		}
		return c.waitInUse(ctx)
	})
}

// Reconfigure has the resolver send the list again, with a service config that selects the same policy and has fields,
// each as "name":value in JSON. It is for clients without a key.
func (c *Client) Reconfigure(fields ...string) {
	c.run.step(func(ctx context.Context) error {
		if err := c.channel.UpdateConfig(c.run.policy.ServiceConfig(fields...), c.state().Endpoints...); err != nil {
			return err
		}
		return c.waitInUse(ctx)
	})
}

// Connections is how many connections the client has begun so far.
func (c *Client) Connections() int { return c.dials.total() }

// Idle waits until the channel is idle. It must have no session and an idle timeout.
func (c *Client) Idle() {
	c.run.step(func(ctx context.Context) error {
		idle := func() bool { return c.channel.Conn().GetState() == connectivity.Idle }
		return leastconntest.WaitFor(ctx, "the channel to become idle", idle)
	})
}

// Close closes the channel; its sessions end with it.
func (c *Client) Close() {
	r := c.run
	r.step(func(ctx context.Context) error {
		r.clients = slices.DeleteFunc(r.clients, func(other *Client) bool { return other == c })
		err := c.channel.Close()
		for _, s := range r.removeSessions(func(s session) bool { return s.client == c }) {
			if s.Wait() == nil {
				return fmt.Errorf("a session on %s ended well when its channel closed", s.Node())
			}
		}
		return err
	})
}

// state is the current list as the resolver gives it. Whoever gets it may change it.
func (c *Client) state() resolver.State {
	var s resolver.State
	for _, h := range c.listed {
		e := h.Endpoint()
		e.Addresses = slices.Clone(e.Addresses)
		s.Endpoints = append(s.Endpoints, e)
	}
	if c.key != "" {
		s = lcresolver.SetResourceKey(s, c.key)
	}
	return s
}

func (c *Client) lists(h *Host) bool {
	return slices.ContainsFunc(c.listed, func(l *Host) bool { return l.Name() == h.Name() })
}

// loads is how many sessions each host holds that the client lists and can use. Those of clients with another key are
// none of its business.
func (c *Client) loads() []Load {
	held := make(map[string]int)
	for _, s := range c.run.sessions {
		if s.client.key == c.key {
			held[s.Node()]++
		}
	}
	var loads []Load
	for _, h := range c.listed {
		if !c.run.down[h.Name()] {
			loads = append(loads, Load{Host: h.Name(), Sessions: held[h.Name()]})
		}
	}
	return loads
}

// dials makes the connections of a channel and counts them by address, which shows when one is replaced.
type dials struct {
	mu sync.Mutex
	by map[string]int
}

func newDials() *dials { return &dials{by: make(map[string]int)} }

// dial is the channel's dialer.
func (d *dials) dial(ctx context.Context, addr string) (net.Conn, error) {
	d.mu.Lock()
	d.by[addr]++
	d.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

// to is how many connections to h have been begun.
func (d *dials) to(h *Host) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.by[h.Addr()]
}

// total is how many connections have been begun.
func (d *dials) total() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 0
	for _, n := range d.by {
		total += n
	}
	return total
}

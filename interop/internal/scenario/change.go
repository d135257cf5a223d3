package scenario

import (
	"context"
	"fmt"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// GoAway has the hosts at slots, one after another, send a GOAWAY on every connection, and waits until each client uses
// a new one. Sessions live on.
func (r *Run) GoAway(slots string) {
	r.step(func(ctx context.Context) error {
		hosts, err := r.hostsAt(slots)
		for _, h := range hosts {
			if err := r.replaceConnections(ctx, h); err != nil {
				return err
			}
		}
		return err
	})
}

func (r *Run) replaceConnections(ctx context.Context, h *Host) error {
	clients := r.clientsOf(h)
	before := make([]int, len(clients))
	for i, c := range clients {
		before[i] = c.dials.to(h)
	}
	h.GoAway()
	for i, c := range clients {
		replaced := func() bool { return c.dials.to(h) > before[i] }
		if err := leastconntest.WaitFor(ctx, "a new connection to "+h.Name(), replaced); err != nil {
			return err
		}
		if err := c.waitInUse(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops the hosts at slots: their sessions break, and no client can connect.
func (r *Run) Stop(slots string) {
	r.changeHosts(slots, func(h *Host) error {
		h.Stop()
		for _, s := range r.removeSessions(func(s session) bool { return s.Node() == h.Name() }) {
			if s.Wait() == nil {
				return fmt.Errorf("a session on %s ended well when it stopped", h.Name())
			}
		}
		r.down[h.Name()] = true
		return nil
	})
	r.step(r.waitPenalties)
}

// Restart brings hosts back that were stopped, on their addresses.
func (r *Run) Restart(slots string) {
	r.changeHosts(slots, func(h *Host) error {
		delete(r.down, h.Name())
		return h.Restart()
	})
}

// SetServing sets what the health services of the hosts at slots answer. All clients that list them must ask.
func (r *Run) SetServing(slots string, serving bool) {
	r.changeHosts(slots, func(h *Host) error {
		h.SetServing(serving)
		if r.down[h.Name()] = !serving; serving {
			delete(r.down, h.Name())
		}
		return nil
	})
}

// End ends the sessions on the hosts at slots.
func (r *Run) End(slots string) {
	r.changeHosts(slots, func(h *Host) error {
		for _, s := range r.removeSessions(func(s session) bool { return s.Node() == h.Name() }) {
			if err := s.End(); err != nil {
				return fmt.Errorf("a session on %s: %w", h.Name(), err)
			}
		}
		return nil
	})
}

// changeHosts does something to the hosts at slots and waits until the policy has followed in every client.
func (r *Run) changeHosts(slots string, do func(*Host) error) {
	r.step(func(ctx context.Context) error {
		hosts, err := r.hostsAt(slots)
		for _, h := range hosts {
			if err := do(h); err != nil {
				return err
			}
			for _, c := range r.clientsOf(h) {
				if err := c.waitInUse(ctx); err != nil {
					return err
				}
			}
		}
		return err
	})
}

// clientsOf returns the clients that list h.
func (r *Run) clientsOf(h *Host) []*Client {
	var clients []*Client
	for _, c := range r.clients {
		if c.lists(h) {
			clients = append(clients, c)
		}
	}
	return clients
}

package trial

import (
	"context"
	"fmt"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// GoAway has the hosts at slots, one after another, send a GOAWAY on every connection, and waits until each client uses
// a new one. Sessions live on. A host of another process sends the GOAWAY by itself, in its own time.
func (t *Trial) GoAway(slots string) {
	t.do(func(ctx context.Context) error {
		hosts, err := t.at(slots)
		for _, h := range hosts {
			if err := t.replaceConnections(ctx, h); err != nil {
				return err
			}
		}
		return err
	})
}

func (t *Trial) replaceConnections(ctx context.Context, h Host) error {
	clients := t.clientsOf(h)
	before := make([]int, len(clients))
	for i, c := range clients {
		before[i] = c.dials.to(h)
	}
	if h.Node != nil {
		h.Node.GoAway()
	}
	for i, c := range clients {
		replaced := func() bool { return c.dials.to(h) > before[i] }
		if err := leastconntest.WaitFor(ctx, "a new connection to "+h.Name, replaced); err != nil {
			return err
		}
		if err := c.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops the hosts at slots: their sessions break, and no client can connect.
func (t *Trial) Stop(slots string) {
	t.each(slots, func(h Host) error {
		h.Node.Stop()
		for _, s := range t.drop(func(s session) bool { return s.Node() == h.Name }) {
			if s.Wait() == nil {
				return fmt.Errorf("a session on %s ended well when it stopped", h.Name)
			}
		}
		t.down[h.Name] = true
		return nil
	})
	t.do(t.forgiven)
}

// Restart brings hosts back that were stopped, on their addresses.
func (t *Trial) Restart(slots string) {
	t.each(slots, func(h Host) error {
		delete(t.down, h.Name)
		return h.Node.Restart()
	})
}

// SetServing sets what the health services of the hosts at slots answer. All clients that list them must ask.
func (t *Trial) SetServing(slots string, serving bool) {
	t.each(slots, func(h Host) error {
		h.Node.SetServing(serving)
		if t.down[h.Name] = !serving; serving {
			delete(t.down, h.Name)
		}
		return nil
	})
}

// End ends the sessions on the hosts at slots.
func (t *Trial) End(slots string) {
	t.each(slots, func(h Host) error {
		for _, s := range t.drop(func(s session) bool { return s.Node() == h.Name }) {
			if err := s.End(); err != nil {
				return fmt.Errorf("a session on %s: %w", h.Name, err)
			}
		}
		return nil
	})
}

// each does something to hosts of this process and waits until the policy has followed in every client.
func (t *Trial) each(slots string, do func(Host) error) {
	t.do(func(ctx context.Context) error {
		hosts, err := t.own(slots)
		for _, h := range hosts {
			if err := do(h); err != nil {
				return err
			}
			for _, c := range t.clientsOf(h) {
				if err := c.settle(ctx); err != nil {
					return err
				}
			}
		}
		return err
	})
}

// clientsOf returns the clients that list h.
func (t *Trial) clientsOf(h Host) []*Client {
	var clients []*Client
	for _, c := range t.clients {
		if c.lists(h) {
			clients = append(clients, c)
		}
	}
	return clients
}

package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// trials numbers the targets, so that channels share load with those of their own trial only.
var trials atomic.Int64

// Trial is one play of a scenario with one policy, for one goroutine. Its methods and those of its clients name hosts by
// slots: "ac" is the first and the third host. The first error ends the trial: every later call does nothing, and the
// outcome has the error.
type Trial struct {
	ctx      context.Context
	hosts    []Host
	policy   Policy
	target   string
	clients  []*Client
	sessions []session       // that are open
	down     map[string]bool // hosts that no policy can use, listed or not, by name
	outcome  Outcome
}

// session is an open stream and the client that opened it.
type session struct {
	*leastconntest.Stream
	client *Client
}

// Run plays a scenario with a policy on the first of hosts, in their order, and cleans up. Nothing else may open streams
// on these hosts meanwhile. A context without a deadline bounds each wait by leastconntest.DefaultTimeout.
func Run(ctx context.Context, hosts []Host, p Policy, s Scenario) Outcome {
	if len(hosts) < s.Hosts {
		return Outcome{Err: fmt.Errorf("%s needs %d hosts, got %d", s.Name, s.Hosts, len(hosts))}
	}
	t := &Trial{
		ctx:    ctx,
		hosts:  hosts[:s.Hosts],
		policy: p,
		target: "trial-" + strconv.FormatInt(trials.Add(1), 10),
		down:   make(map[string]bool),
	}
	s.Play(t)
	t.do(func(ctx context.Context) (err error) { t.outcome.After, err = t.census(ctx); return err })
	if err := t.close(); t.outcome.Err == nil {
		t.outcome.Err = err
	}
	return t.outcome
}

// do takes the next step, unless one has failed.
func (t *Trial) do(step func(context.Context) error) {
	if t.outcome.Err == nil {
		t.outcome.Err = step(t.ctx)
	}
}

// Changed says that the change is made: what the hosts hold now is the outcome's Before.
func (t *Trial) Changed() {
	t.do(func(ctx context.Context) (err error) { t.outcome.Before, err = t.census(ctx); return err })
}

// Check shows that all sessions are alive and that the servers hold as many as the trial has opened.
func (t *Trial) Check() {
	t.do(func(ctx context.Context) error { _, err := t.census(ctx); return err })
}

// Fault notes that something is not as the scenario wants it, though it can go on.
func (t *Trial) Fault(format string, args ...any) {
	t.do(func(context.Context) error {
		t.outcome.Faults = append(t.outcome.Faults, fmt.Sprintf(format, args...))
		return nil
	})
}

// census shows that all sessions are alive, and counts them by host, of those that any client lists.
func (t *Trial) census(ctx context.Context) ([]Load, error) {
	if err := leastconntest.PingAll(t.streams()); err != nil {
		return nil, err
	}
	if err := t.agree(ctx); err != nil {
		return nil, err
	}
	held := leastconntest.Counts(t.streams())
	var loads []Load
	for _, h := range t.hosts {
		if slices.ContainsFunc(t.clients, func(c *Client) bool { return c.lists(h) }) {
			loads = append(loads, Load{Host: h.Name, Sessions: held[h.Name]})
		}
	}
	return loads, nil
}

// agree waits until the servers hold as many sessions as the trial, and compares that with what least_conn counts. Hosts
// of other processes cannot be asked.
func (t *Trial) agree(ctx context.Context) error {
	held := leastconntest.Counts(t.streams())
	for _, h := range t.hosts {
		if h.Node == nil {
			continue
		}
		if err := h.Node.WaitLive(ctx, held[h.Name]); err != nil {
			return fmt.Errorf("%s serves %d sessions, not %d: %w", h.Name, h.Node.Live(), held[h.Name], err)
		}
	}
	t.checkLedgers()
	return nil
}

func (t *Trial) streams() []*leastconntest.Stream {
	streams := make([]*leastconntest.Stream, len(t.sessions))
	for i, s := range t.sessions {
		streams[i] = s.Stream
	}
	return streams
}

// drop forgets the sessions that have ended, or end now, and returns them.
func (t *Trial) drop(gone func(session) bool) []session {
	var dropped []session
	for _, s := range t.sessions {
		if gone(s) {
			dropped = append(dropped, s)
		}
	}
	t.sessions = slices.DeleteFunc(t.sessions, gone)
	return dropped
}

// close ends the sessions and leaves the servers as it found them.
func (t *Trial) close() error {
	leastconntest.CancelAll(t.streams())
	t.sessions = nil
	var errs []error
	for _, c := range t.clients {
		errs = append(errs, c.channel.Close())
	}
	return errors.Join(append(errs, t.agree(t.ctx))...)
}

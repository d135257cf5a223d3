package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// runs numbers the targets, so that channels share load with those of their own run only.
var runs atomic.Int64

// Run is one play of a scenario with one policy, for one goroutine. Its methods and those of its clients name hosts by
// slots: "ac" is the first and the third host. The first error ends the run: every later call does nothing, and the
// outcome has the error.
type Run struct {
	ctx      context.Context
	hosts    []*Host
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

// Play plays a scenario with a policy on the first of hosts, in their order, and cleans up. Nothing else may open streams
// on these hosts meanwhile. A context without a deadline bounds each wait by leastconntest.DefaultTimeout.
func Play(ctx context.Context, hosts []*Host, p Policy, s Scenario) Outcome {
	if len(hosts) < s.Hosts {
		return Outcome{Err: fmt.Errorf("%s needs %d hosts, got %d", s.Name, s.Hosts, len(hosts))}
	}
	r := &Run{
		ctx:    ctx,
		hosts:  hosts[:s.Hosts],
		policy: p,
		target: "scenario-" + strconv.FormatInt(runs.Add(1), 10),
		down:   make(map[string]bool),
	}
	s.Play(r)
	r.step(func(ctx context.Context) (err error) { r.outcome.After, err = r.countSessions(ctx); return err })
	if err := r.close(); r.outcome.Err == nil {
		r.outcome.Err = err
	}
	return r.outcome
}

// step takes the next step, unless one has failed.
func (r *Run) step(step func(context.Context) error) {
	if r.outcome.Err == nil {
		r.outcome.Err = step(r.ctx)
	}
}

// RecordBefore says that the change is made: what the hosts hold now is the outcome's Before.
func (r *Run) RecordBefore() {
	r.step(func(ctx context.Context) (err error) { r.outcome.Before, err = r.countSessions(ctx); return err })
}

// Check shows that all sessions are alive and that the servers hold as many as the run has opened.
func (r *Run) Check() {
	r.step(func(ctx context.Context) error { _, err := r.countSessions(ctx); return err })
}

// Fault notes that something is not as the scenario wants it, though it can go on.
func (r *Run) Fault(format string, args ...any) {
	r.step(func(context.Context) error {
		r.outcome.Faults = append(r.outcome.Faults, fmt.Sprintf(format, args...))
		return nil
	})
}

// countSessions shows that all sessions are alive, and counts them by host, of those that any client lists.
func (r *Run) countSessions(ctx context.Context) ([]Load, error) {
	if err := leastconntest.PingAll(r.streams()); err != nil {
		return nil, err
	}
	if err := r.waitCounts(ctx); err != nil {
		return nil, err
	}
	held := leastconntest.Counts(r.streams())
	var loads []Load
	for _, h := range r.hosts {
		if slices.ContainsFunc(r.clients, func(c *Client) bool { return c.lists(h) }) {
			loads = append(loads, Load{Host: h.Name(), Sessions: held[h.Name()]})
		}
	}
	return loads, nil
}

// waitCounts waits until the servers hold as many sessions as the run, and compares that with what least_conn counts.
func (r *Run) waitCounts(ctx context.Context) error {
	held := leastconntest.Counts(r.streams())
	for _, h := range r.hosts {
		if err := h.WaitLive(ctx, held[h.Name()]); err != nil {
			return fmt.Errorf("%s serves %d sessions, not %d: %w", h.Name(), h.Live(), held[h.Name()], err)
		}
	}
	r.compareLedgers()
	return nil
}

func (r *Run) streams() []*leastconntest.Stream {
	streams := make([]*leastconntest.Stream, len(r.sessions))
	for i, s := range r.sessions {
		streams[i] = s.Stream
	}
	return streams
}

// removeSessions forgets the sessions that have ended, or end now, and returns them.
func (r *Run) removeSessions(gone func(session) bool) []session {
	var dropped []session
	for _, s := range r.sessions {
		if gone(s) {
			dropped = append(dropped, s)
		}
	}
	r.sessions = slices.DeleteFunc(r.sessions, gone)
	return dropped
}

// close ends the sessions and leaves the servers as it found them.
func (r *Run) close() error {
	leastconntest.CancelAll(r.streams())
	r.sessions = nil
	var errs []error
	for _, c := range r.clients {
		errs = append(errs, c.channel.Close())
	}
	return errors.Join(append(errs, r.waitCounts(r.ctx))...)
}

// Outcome is what a policy made of a scenario.
type Outcome struct {
	Before, After []Load      // of the hosts in the list, in the order of their slots
	Placements    []Placement // of all sessions
	Faults        []string    // what else was not as the scenario wants it
	Err           error       // why the scenario could not be played to its end
}

// Misplacements says which sessions went wrong and how.
func (o Outcome) Misplacements() []string {
	var wrong []string
	for _, p := range o.Placements {
		if w := p.Misplacement(); w != "" {
			wrong = append(wrong, w)
		}
	}
	return wrong
}

package main

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// trial is one scenario with one policy, over a channel of its own.
type trial struct {
	hosts      []host // that take part, in the order of the table
	channel    *leastconntest.Channel
	dials      *dials
	listed     []host // by the resolver, at the moment
	sessions   []*leastconntest.Stream
	placements []placement // of sessions, in the same order
}

// try runs a scenario with a policy from its first session to its last and cleans up.
func try(ctx context.Context, site *site, p policy, s scenario) (o outcome) {
	if s.ageing && !site.ages() {
		return outcome{skipped: true}
	}
	t := &trial{hosts: site.hosts[:s.hosts], dials: newDials()}
	t.channel, o.err = leastconntest.Dial(leastconntest.ChannelConfig{
		ServiceConfig: p.config,
		DialOptions:   []grpc.DialOption{grpc.WithContextDialer(t.dials.dial)},
	})
	if o.err != nil {
		return o
	}
	defer func() {
		if err := t.close(ctx); err != nil && o.err == nil {
			o.err = err
		}
	}()
	o.err = inOrder(
		func() error { return s.prepare(ctx, t) },
		func() (err error) { o.before, err = t.census(ctx); return err },
		func() error { o.fresh = len(t.sessions); return t.open(ctx, s.more) },
		func() (err error) { o.after, err = t.census(ctx); return err },
	)
	o.placements = t.placements
	return o
}

// list has the resolver list hosts, and waits until the policy can use those that are new.
func (t *trial) list(ctx context.Context, hosts ...host) error {
	endpoints := make([]resolver.Endpoint, len(hosts))
	var joined []string
	for i, h := range hosts {
		endpoints[i] = h.endpoint
		if !slices.ContainsFunc(t.listed, func(l host) bool { return l.name == h.name }) {
			joined = append(joined, h.name)
		}
	}
	t.listed = hosts
	if err := t.channel.Update(endpoints...); err != nil {
		return err
	}
	// A host that joins holds no more sessions than the others do, so every policy here sends it a probe soon.
	return t.channel.WaitAnswered(ctx, joined...)
}

// open opens n sessions one after another and notes where each went.
func (t *trial) open(ctx context.Context, n int) error {
	for range n {
		p := placement{number: len(t.sessions) + 1, loads: t.loads()}
		s, err := t.channel.Open(ctx)
		if err != nil {
			return fmt.Errorf("session %d: %w", p.number, err)
		}
		p.host = s.Node()
		t.sessions = append(t.sessions, s)
		t.placements = append(t.placements, p)
	}
	return nil
}

// age waits until the connection to h has got a GOAWAY and the policy uses its successor. A host of another process sends
// the GOAWAY by itself, in its own time. It leaves h alone in the list: only then is an answer from h sure to come soon,
// whatever h holds.
func (t *trial) age(ctx context.Context, h host) error {
	before := t.dials.to(h)
	if h.node != nil {
		h.node.GoAway()
	}
	replaced := func() bool { return t.dials.to(h) > before }
	if err := leastconntest.WaitFor(ctx, "a new connection to "+h.name, replaced); err != nil {
		return err
	}
	if err := t.list(ctx, h); err != nil {
		return err
	}
	return t.channel.WaitAnswered(ctx, h.name)
}

func (t *trial) ping() error { return leastconntest.PingAll(t.sessions) }

// loads is how many sessions each listed host holds.
func (t *trial) loads() []load {
	counts := leastconntest.Counts(t.sessions)
	loads := make([]load, len(t.listed))
	for i, h := range t.listed {
		loads[i] = load{host: h.name, sessions: counts[h.name]}
	}
	return loads
}

// census shows that all sessions are alive, and counts them by host. Where the server can be asked, it must agree.
func (t *trial) census(ctx context.Context) ([]int, error) {
	if err := t.ping(); err != nil {
		return nil, err
	}
	counts := leastconntest.Counts(t.sessions)
	held := make([]int, len(t.hosts))
	for i, h := range t.hosts {
		held[i] = counts[h.name]
		if h.node == nil {
			continue
		}
		if err := h.node.WaitLive(ctx, held[i]); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// close ends the sessions and leaves the servers as it found them.
func (t *trial) close(ctx context.Context) error {
	leastconntest.CancelAll(t.sessions)
	t.sessions = nil
	if err := t.channel.Close(); err != nil {
		return err
	}
	_, err := t.census(ctx)
	return err
}

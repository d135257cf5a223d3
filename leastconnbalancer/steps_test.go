package leastconnbalancer_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// steps are what the verbs of a script do.
var steps = map[string]func(*player, string){
	"list":   (*player).list,
	"empty":  func(p *player, _ string) { p.refused(); p.listed = nil },
	"config": (*player).setConfig,
	"hold":   func(p *player, args string) { p.openStreams(args, p.OpenN) },
	"burst":  func(p *player, args string) { p.openStreams(args, p.OpenTogether) },
	"call": func(p *player, args string) {
		n, want := counted(args)
		p.script.expect(want, tally(p.calls(n)))
	},
	"end": func(p *player, args string) {
		p.finishStreams(args, func(h heldStream) { require.NoError(p.env, h.End()) })
	},
	"cancel": func(p *player, args string) { p.finishStreams(args, func(h heldStream) { h.Cancel() }) },
	"queue":  func(p *player, args string) { p.letWait(args, true) },
	"wait":   func(p *player, args string) { p.letWait(args, false) },
	"opened": (*player).opened,
	"full": func(p *player, _ string) {
		p.noRoom()
		p.noRoom(grpc.WaitForReady(true))
	},
	"fails":  func(p *player, text string) { require.ErrorContains(p.env, p.unavailable(), text) },
	"goaway": (*player).goAway,
	"stop":   (*player).stopNode,
	"start":  (*player).startNode,
	"unwell": func(p *player, name string) { p.script.setServing(name, false) },
	"well":   func(p *player, name string) { p.script.setServing(name, true) },
	"count":  (*player).count,
	"conns": func(p *player, args string) {
		_, want := p.script.where(args)
		for name, n := range want {
			require.Equal(p.env, int(n), p.script.nodes[name].Conns(), "%s: connections to %s", p.script.line, name)
		}
	},
	"ramp": func(p *player, args string) {
		_, want := p.script.where(args)
		for name, part := range want {
			require.InDelta(p.env, part, p.member(p.script.nodes[name]).SlowStartFactor, 1e-9, "%s: part of %s", p.script.line, name)
		}
	},
	"away":  (*player).leavePolicy,
	"back":  func(p *player, _ string) { p.setConfig(p.config) },
	"close": (*player).close,
}

// counted reads "3 -> a1 b2".
func counted(args string) (n int, want string) {
	number, want, _ := strings.Cut(args, " -> ")
	n, _ = strconv.Atoi(strings.TrimSpace(number))
	return n, want
}

// list dials with its first list.
func (p *player) list(args string) {
	s := p.script
	p.eps, p.listed = nil, nil
	for _, word := range strings.Fields(args) {
		m := endpointPattern.FindStringSubmatch(word)
		require.NotNil(s, m, "%s: %q", s.line, word)
		ep := s.node(m[1]).Endpoint()
		for i, set := range []func(resolver.Endpoint, uint32) resolver.Endpoint{lcresolver.SetWeight, lcresolver.SetPriority, lcresolver.SetMaxInFlight} {
			if m[i+2] != "" {
				n, _ := strconv.ParseUint(m[i+2], 10, 32)
				ep = set(ep, uint32(n))
			}
		}
		p.eps, p.listed = append(p.eps, ep), append(p.listed, m[1])
	}
	if p.channel == nil {
		p.dial()
	} else {
		require.NoError(s, p.Update(p.eps...), s.line)
	}
	p.waitListed()
}

func (p *player) dial() {
	s := p.script
	cfg := leastconntest.ChannelConfig{ServiceConfig: p.serviceConfig(), Endpoints: p.eps, DialOptions: p.dialer.options(retryAtOnce)}
	cfg.Target = strings.ReplaceAll(s.Name(), "#", "")
	p.channel = s.env.unused(cfg)
	p.useKey()
	p.Connect()
}

// useKey looks for the channel's load in the ledger of its config.
func (p *player) useKey() {
	var c struct{ ResourceKey string }
	require.NoError(p.env, json.Unmarshal([]byte(p.config), &c), p.script.line)
	if p.key = p.Conn().CanonicalTarget(); c.ResourceKey != "" {
		p.key = c.ResourceKey
	}
}

// setConfig before the first list is what the channel is dialed with.
func (p *player) setConfig(config string) {
	p.config, p.away = strings.ReplaceAll(config, "KEY", p.script.Name()), false
	if p.channel == nil {
		return
	}
	p.useKey()
	require.NoError(p.env, p.UpdateConfig(p.serviceConfig(), p.eps...), p.script.line)
	p.waitListed()
}

func (p *player) openStreams(args string, open func(context.Context, int, ...grpc.CallOption) ([]*leastconntest.Stream, error)) {
	n, want := counted(args)
	streams, err := open(p.env.ctx, n)
	require.NoError(p.env, err, p.script.line)
	for _, st := range streams {
		p.held = append(p.held, heldStream{st, p.key})
	}
	p.script.expect(want, leastconntest.Counts(streams))
}

func (p *player) finishStreams(args string, finish func(heldStream)) {
	names, numbers := p.script.where(args)
	for _, name := range names {
		n := int(numbers[name])
		dropped := p.drop(name, n)
		require.True(p.env, len(dropped) > 0 && (n < 0 || len(dropped) == n), "%s: %d streams at %s", p.script.line, len(dropped), name)
		for _, h := range dropped {
			finish(h)
		}
	}
}

func (p *player) letWait(args string, forRoom bool) {
	n, _ := counted(args)
	before := int(p.snapshot().Waiting)
	for i := range n {
		done := make(chan waited, 1)
		go func() {
			st, err := p.Open(p.env.ctx, grpc.WaitForReady(i%2 == 0 || !forRoom))
			done <- waited{st, err}
		}()
		p.waiting = append(p.waiting, done)
		if forRoom {
			p.waits(before + i + 1)
		}
	}
	if !forRoom {
		require.Equal(p.env, codes.DeadlineExceeded, p.brief(grpc.WaitForReady(true)), p.script.line)
	}
}

func (p *player) opened(args string) {
	var got, want []string
	for _, word := range strings.Fields(args) {
		n, _ := strconv.Atoi(word[1:])
		want = append(want, slices.Repeat([]string{word[:1]}, max(1, n))...)
	}
	for range want {
		p.env.wait(p.script.line, func() bool { return len(p.waiting[0]) == 1 })
		w := <-p.waiting[0]
		require.NoError(p.env, w.err, p.script.line)
		got = append(got, w.stream.Node())
		p.waiting = p.waiting[1:]
		p.held = append(p.held, heldStream{w.stream, p.key})
	}
	slices.Sort(got)
	slices.Sort(want)
	require.Equal(p.env, want, got, p.script.line)
	p.othersWait()
}

func (p *player) othersWait() {
	p.env.Helper()
	for _, w := range slices.Concat(p.waiting, p.inside) {
		require.Empty(p.env, w, "%s: those behind wait", p.script.line)
	}
}

func (p *player) goAway(name string) {
	n := p.script.nodes[name]
	before := n.Conns()
	n.GoAway()
	p.env.wait("a new connection to "+name, func() bool { return n.Conns() > before })
	p.waitListed()
}

func (p *player) stopNode(name string) {
	s, n := p.script, p.script.nodes[name]
	s.down[name] = true
	tried := map[*player]int{}
	for _, p := range s.players {
		if slices.Contains(p.listed, name) {
			tried[p] = p.dialer.attempts(n)
		}
	}
	p.stop(n)
	s.lose(name)
	for p, before := range tried {
		s.wait("an attempt to connect has failed", func() bool { return p.dialer.attempts(n) >= before+2 })
	}
}

func (p *player) startNode(name string) {
	s := p.script
	require.NoError(s, s.nodes[name].Restart(), s.line)
	s.setUp(name)
}

func (s *script) setServing(name string, serving bool) {
	s.nodes[name].SetServing(serving)
	if serving {
		s.setUp(name)
		return
	}
	s.down[name] = true
	for _, p := range s.players {
		p.waitListed()
	}
}

// setUp waits until all channels that list the node can use it.
func (s *script) setUp(name string) {
	delete(s.down, name)
	for _, p := range s.players {
		p.waitListed()
	}
}

func (p *player) count(args string) {
	got := map[string]int{}
	for _, ep := range p.snapshot().Endpoints {
		for name, n := range p.script.nodes {
			if slices.Contains(ep.Addresses, n.Addr()) {
				got[name] = int(ep.InFlight)
			}
		}
	}
	p.script.expect(args, got)
}

// away goes to another policy and waits until least_conn is closed.
func (p *player) leavePolicy(string) {
	require.NoError(p.env, p.UpdateConfig(roundRobin, p.eps...))
	p.away = true
	p.waitListed()
}

func (p *player) close(string) {
	require.NoError(p.env, p.Close())
	lost := p.held
	p.held, p.listed = nil, nil
	for _, h := range lost {
		require.Equal(p.env, codes.Canceled, codeOf(h.Wait()), p.script.line)
	}
	for _, w := range p.waiting {
		require.Equal(p.env, codes.Canceled, codeOf((<-w).err), p.script.line)
	}
	p.waiting = nil
}

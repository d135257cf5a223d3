package leastconnbalancer_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// The statements on streams that move. Where they are is what their nodes see.
//
//	sessions 4 -> a2 b2   opens them all at one moment
//	careful 4, deaf 4     the same, with programs of other kinds
//	level a3 b1           the nodes come to have as many, and no session has failed
//	told 1                so many have been told to move so far
//	atmost 20             no more have been
//	graceful a            a stops gracefully, which takes until its last stream has ended
//	ages a                a closes its connection for its age: its streams are told, and the old one is soon gone
//	ramps a 30            of 30 streams a has no more than its part of its weight allows, until it is whole
//	refuses a             a fails every RPC at once
//	flaps 10 a            a joins the list and leaves it so many times
//	busy 40               so many make unary RPCs, one after another, for longer than loads take to settle
//	calm                  passes longer than that
func init() {
	steps["sessions"] = func(p *player, args string) { p.openSessions(args, p.obedient) }
	steps["careful"] = func(p *player, args string) { p.openSessions(args, p.careful) }
	steps["deaf"] = func(p *player, args string) { p.openSessions(args, p.deaf) }
	steps["level"] = (*player).level
	steps["told"] = func(p *player, args string) { p.script.sessions.expectTold(p.script, args) }
	steps["atmost"] = func(p *player, args string) {
		most, err := strconv.Atoi(args)
		require.NoError(p.env, err, p.script.line)
		require.LessOrEqual(p.env, int(p.script.sessions.told.Load()), most, p.script.line)
	}
	steps["graceful"] = (*player).graceful
	steps["ages"] = (*player).age
	steps["flaps"] = (*player).flap
	steps["busy"] = (*player).busy
	steps["ramps"] = func(p *player, args string) {
		name, all, _ := strings.Cut(args, " ")
		n, err := strconv.Atoi(all)
		require.NoError(p.env, err, p.script.line)
		p.ramp(name, float64(n))
	}
	steps["calm"] = func(*player, string) { time.Sleep(calm) }
	steps["refuses"] = func(p *player, name string) { failing(p.script.nodes[name]) }
}

// calm is longer than loads must be uneven before a stream is asked to move. A test
// that waits so long shows that none is; on a machine that is too busy it shows less.
const calm = 7 * time.Second

func (p *player) openSessions(args string, program func(ctx context.Context, opened func()) error) {
	s := p.script
	s.Helper()
	n, want := counted(args)
	if s.sessions == nil {
		s.sessions = newSessions(s.ctx)
		s.Cleanup(s.sessions.cancel)
	}
	var opening sync.WaitGroup
	opening.Add(n)
	for range n {
		s.sessions.hold(program, opening.Done)
	}
	opening.Wait()
	s.sessions.unbroken(s.env)
	s.expect(want, s.live())
}

// live is how many streams each node has.
func (s *script) live() map[string]int {
	live := map[string]int{}
	for name, n := range s.nodes {
		if l := n.HeldStreams(); l != 0 {
			live[name] = l
		}
	}
	return live
}

func (p *player) level(args string) {
	s := p.script
	s.Helper()
	_, want := s.where(args)
	var got map[string]int
	there := func() bool {
		got = s.live()
		all := 0
		for _, n := range got {
			all += n
		}
		if all != int(s.sessions.begun.Load()) {
			return false
		}
		for name := range s.nodes {
			if float64(got[name]) != want[name] {
				return false
			}
		}
		return true
	}
	if err := leastconntest.WaitFor(s.within(patience), s.line, there); err != nil {
		s.sessions.unbroken(s.env)
		require.NoError(s, err, "streams by node: %v, told: %d", got, s.sessions.told.Load())
	}
	s.sessions.unbroken(s.env)
}

func (p *player) graceful(name string) {
	s := p.script
	s.down[name] = true
	s.nodes[name].GracefulStop()
	for _, p := range s.players {
		p.waitListed()
	}
}

func (p *player) age(name string) {
	s, n := p.script, p.script.nodes[name]
	channels, streams, told := n.OpenConns(), n.HeldStreams(), s.sessions.told.Load()
	p.goAway(name)
	s.wait("the old connection to "+name+" is gone", func() bool { return n.OpenConns() == channels })
	require.EqualValues(s, streams, s.sessions.told.Load()-told, "%s: sessions that were told to move", s.line)
}

func (p *player) flap(args string) {
	times, name, _ := strings.Cut(args, " ")
	n, err := strconv.Atoi(times)
	require.NoError(p.env, err, p.script.line)
	without := strings.Join(p.listed, " ")
	for range n {
		p.list(without + " " + name)
		time.Sleep(200 * time.Millisecond)
		p.list(without)
		time.Sleep(200 * time.Millisecond)
	}
}

func (p *player) busy(args string) {
	n, err := strconv.Atoi(args)
	require.NoError(p.env, err, p.script.line)
	for _, n := range p.script.nodes {
		n.SetDelay(2 * time.Millisecond)
	}
	callers := p.callers(n)
	callers.goOn()
	time.Sleep(calm)
	callers.stop()
}

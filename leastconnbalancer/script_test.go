package leastconnbalancer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// row is a scenario: what happens to channels with real nodes, and where their
// RPCs go.
//
// A script is statements, a line each or set apart by ";". "y: " before one
// makes it another channel's, of the same target; the first one is "x". Nodes
// have letters, "a2 b" is two at a and all at b.
//
//	list a b:2 c/1 d<3    the resolver lists these, b with weight 2, c at priority level 1, d with a cap of 3
//	empty                 the resolver lists nothing
//	config {…}            the resolver sends another config of the policy; KEY in it is the test's name
//	hold 4 -> a2 b2       opens streams, one after another, and says where they go
//	burst 4 -> a2 b2      opens them all at one moment
//	call 4 -> a2 b2       makes unary RPCs, one after another
//	end a2 b, cancel a2   ends streams
//	queue 2, wait 2       opens streams that wait, for room or for a node
//	opened a5 b           the next of those have been opened there, the others wait on
//	queued 2              so many RPCs come to wait for room
//	limit a5 b0           a and b tell their limits of streams per connection
//	inside 2              opens streams that wait within a connection
//	begun a               one of those has been opened there, the others wait on
//	shows full: 5         the page comes to have the text
//	full                  RPCs fail for want of room
//	fails no way          RPCs fail, and say so
//	goaway a              a sends a GOAWAY, and is connected to again
//	stop a, start a       a dies, with its streams, and is back
//	drain a, undrain a    Drain keeps RPCs from a; the last such call ends
//	reaches a             an RPC comes to go to a; others may fail or go elsewhere until then
//	unwell a, well a      a's health service says so
//	count a2 b0           what the ledger knows, and has in flight
//	conns a1 b1           the connections that nodes have accepted so far
//	ramp a1 b0.1          the parts of their weights that nodes have
//	away, back, close     the channel goes to another policy, returns, ends
//
// After each statement the ledgers' counts are those of the open streams, unless
// streams wait; while lists, configs and connections change, too. In the end the
// nodes have them.
type row struct {
	name   string
	config string // of the policy; by default one without penalties
	script string
}

// play plays each row beside other tests.
func play(t *testing.T, rows ...row) {
	t.Parallel()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if r.config == "" {
				r.config = `{"failurePenalty":"0s"}`
			}
			s := &script{env: parallelEnv(t), row: r, nodes: map[string]*leastconntest.Node{}, players: map[string]*player{}, down: map[string]bool{}, undrains: map[string][]func(){}}
			for line := range strings.SplitSeq(strings.ReplaceAll(r.script, ";", "\n"), "\n") {
				if line = strings.TrimSpace(line); line != "" {
					s.line = line
					s.step()
				}
			}
			s.finish()
		})
	}
}

// script is a row as it is played.
type script struct {
	*env
	row
	line     string
	nodes    map[string]*leastconntest.Node
	down     map[string]bool // stopped or unwell
	undrains map[string][]func()
	players  map[string]*player

	sessions *sessions // nil without a statement on them
}

// player is one channel of a script.
type player struct {
	*channel
	script  *script
	dialer  *dialer
	config  string
	eps     []resolver.Endpoint
	listed  []string // nodes
	away    bool     // at another policy
	held    []heldStream
	waiting []<-chan waited
	inside  []<-chan waited // within connections
}

// heldStream is counted in the ledger that was the channel's when it began.
type heldStream struct {
	*leastconntest.Stream
	key string
}

type waited struct {
	stream *leastconntest.Stream
	err    error
}

func (s *script) step() {
	s.Helper()
	name, rest := "x", s.line
	if before, after, ok := strings.Cut(s.line, ": "); ok && len(before) == 1 {
		name, rest = before, after
	}
	p := s.player(name)
	verb, args, _ := strings.Cut(rest, " ")
	do, ok := steps[verb]
	require.True(s, ok, "%s", s.line)
	if during[verb] && !s.anyWaits() {
		for _, stop := range s.watchAll() {
			defer stop()
		}
	}
	do(p, strings.TrimSpace(args))
	if verb == "opened" || !s.anyWaits() {
		s.check()
	}
}

// anyWaits reports whether there are streams that may begin at any time.
func (s *script) anyWaits() bool {
	if s.sessions != nil {
		return true
	}
	for _, p := range s.players {
		if len(p.waiting)+len(p.inside) > 0 {
			return true
		}
	}
	return false
}

// node starts the node when it is first spoken of.
func (s *script) node(name string) *leastconntest.Node {
	s.Helper()
	if s.nodes[name] == nil {
		s.nodes[name] = s.env.nodes(name)[0]
	}
	return s.nodes[name]
}

func (s *script) player(name string) *player {
	if s.players[name] == nil {
		s.players[name] = &player{script: s, dialer: newDialer(), config: strings.ReplaceAll(s.config, "KEY", s.Name())}
	}
	return s.players[name]
}

// during are the statements in the midst of which no count may change.
var during = map[string]bool{"list": true, "config": true, "goaway": true, "start": true, "unwell": true, "well": true, "away": true, "back": true}

// open is how many streams of a ledger are open at each node's address.
func (s *script) open() map[string]map[string]int64 {
	open := map[string]map[string]int64{}
	for _, p := range s.players {
		if p.channel != nil && open[p.key] == nil {
			open[p.key] = map[string]int64{}
		}
		for _, h := range p.held {
			if open[h.key] == nil {
				open[h.key] = map[string]int64{}
			}
			open[h.key][s.nodes[h.Node()].Addr()]++
		}
	}
	return open
}

// inFlightOf is what a snapshot says of the endpoints that have any.
func inFlightOf(s state.Snapshot) map[string]int64 {
	by := map[string]int64{}
	for _, ep := range s.Endpoints {
		if ep.InFlight != 0 {
			by[ep.Address()] = ep.InFlight
		}
	}
	return by
}

func (s *script) watchAll() (stops []func()) {
	for key, want := range s.open() {
		if len(want) == 0 {
			continue
		}
		c := &channel{env: s.env, key: key}
		stops = append(stops, c.watch(func(snap state.Snapshot) error {
			if got := inFlightOf(snap); !maps.Equal(want, got) {
				return fmt.Errorf("%s: in flight by address: %v, not %v", s.line, got, want)
			}
			return nil
		}))
	}
	return stops
}

func (s *script) check() {
	s.Helper()
	for key, want := range s.open() {
		c := &channel{env: s.env, key: key}
		require.Equal(s, want, inFlightOf(c.snapshot()), "%s: in flight by address", s.line)
	}
}

func (s *script) finish() {
	s.Helper()
	s.line = "in the end"
	if s.sessions != nil {
		s.sessions.end(s.env)
	}
	live := map[string]int{}
	for _, p := range s.players {
		require.Empty(s, append(p.waiting, p.inside...), "streams that wait")
		for _, h := range p.held {
			require.NoError(s, h.Ping(), "stream at %s", h.Node())
			live[h.Node()]++
		}
		if p.channel != nil {
			require.Zero(s, p.snapshot().Waiting, "RPCs that wait for room")
		}
	}
	for name, n := range s.nodes {
		require.NoError(s, n.WaitLive(s.ctx, live[name]), "streams at %s", name)
	}
}

// serviceConfig has health checks where the script speaks of health.
func (p *player) serviceConfig() string {
	health := ""
	if strings.Contains(p.script.script, "well ") {
		health = `,"healthCheckConfig":{"serviceName":""}`
	}
	return strings.Replace(selecting(p.config), "}]", "}]"+health, 1)
}

// endpointPattern is a node's letter with what a resolver says of it.
var endpointPattern = regexp.MustCompile(`^([a-h])(?::(\d+))?(?:/(\d+))?(?:<(\d+))?$`)

// wherePattern is a node's letter with a number.
var wherePattern = regexp.MustCompile(`^([a-h])([\d.]*)$`)

// where reads "a2 b0.5 c" as pairs in that order; no number is -1.
func (s *script) where(text string) (names []string, numbers map[string]float64) {
	s.Helper()
	numbers = map[string]float64{}
	for _, word := range strings.Fields(text) {
		m := wherePattern.FindStringSubmatch(word)
		require.NotNil(s, m, "%s: %q", s.line, word)
		n := -1.0
		if m[2] != "" {
			require.NoError(s, json.Unmarshal([]byte(m[2]), &n), s.line)
		}
		names, numbers[m[1]] = append(names, m[1]), n
	}
	return names, numbers
}

// expect compares where things are with what the statement says.
func (s *script) expect(want string, got map[string]int) {
	s.Helper()
	if want == "" {
		return
	}
	_, numbers := s.where(want)
	by := map[string]int{}
	for name, n := range numbers {
		by[name] = int(n)
	}
	require.Equal(s, by, got, s.line)
}

// waitListed waits until the nodes have a ready member for each channel of the
// ledger that can use them.
func (p *player) waitListed() {
	p.env.Helper()
	for _, name := range p.listed {
		want := 0
		for _, other := range p.script.players {
			if other.channel != nil && other.key == p.key && !other.away && !p.script.down[name] && slices.Contains(other.listed, name) {
				want++
			}
		}
		p.waitMembers(want, p.script.nodes[name])
	}
}

// drop takes out the streams that are at a node, at most n of them.
func (p *player) drop(node string, n int) (dropped []heldStream) {
	p.held = slices.DeleteFunc(p.held, func(h heldStream) bool {
		if h.Node() != node || n == 0 {
			return false
		}
		n--
		dropped = append(dropped, h)
		return true
	})
	return dropped
}

// lose checks that the streams at a node break.
func (s *script) lose(node string) {
	s.Helper()
	for _, p := range s.players {
		for _, h := range p.drop(node, -1) {
			require.Equal(s, codes.Unavailable, codeOf(h.Wait()), s.line)
		}
	}
}

// refused checks that a list without endpoints is.
func (p *player) refused() { require.ErrorIs(p.env, p.Update(), balancer.ErrBadResolverState) }

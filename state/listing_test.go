package state_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// listings plays what several endpoint sets of a ledger list. An endpoint is written
// as its addresses with its id before them: "a", "a+b", "u@a", "u@a+b".
//
// Its lines:
//
//	x lists a b+c   endpoint set x has these endpoints now
//	x opens a 4     4 leases on the endpoint a of endpoint set x
//	x ends a 2      the oldest 2 that it opened there are released
//	x has a 2       the endpoint of a counts 2 in flight
//	x closes
//	endpoints 3         the ledger has 3 endpoints
type listings struct {
	*testing.T
	ledger  *state.Ledger
	shuffle func(n int, swap func(i, j int)) // the endpoints of every list
	sets    map[string]*listing
	leases  map[string][]state.Lease // by "endpoint set endpoint"
	views   uint32
}

type listing struct {
	endpointSet *state.EndpointSet
	now         map[string]*listedEndpoint // by endpoint
}

// listedEndpoint is a listed endpoint, ready in a ready set that has nothing else.
type listedEndpoint struct {
	member   *state.Member
	readySet *state.ReadySet
	priority uint32
}

func newListings(t *testing.T, seed uint64) *listings {
	return &listings{
		T: t, ledger: state.Open(""), shuffle: rand.New(rand.NewPCG(seed, 0)).Shuffle,
		sets: map[string]*listing{}, leases: map[string][]state.Lease{},
	}
}

// play runs the lines and then takes everything away.
func (p *listings) play(lines ...string) {
	p.Helper()
	for _, line := range lines {
		p.line(line)
		require.NoError(p, p.ledger.Check(), line)
	}
	for name := range p.sets {
		p.line(name + " closes")
	}
	for _, ls := range p.leases {
		for _, l := range ls {
			require.True(p, l.Release())
		}
	}
	require.NoError(p, p.ledger.Check())
	require.Empty(p, p.ledger.Snapshot().Endpoints)
}

func (p *listings) line(line string) {
	p.Helper()
	words := strings.Fields(line)
	if words[0] == "endpoints" {
		require.Len(p, p.ledger.Snapshot().Endpoints, number(words[1]), line)
		return
	}
	r := p.setOf(words[0])
	switch rest := words[2:]; words[1] {
	case "lists":
		p.list(r, rest)
	case "opens":
		for range number(rest[1]) {
			lease, _, ok := r.now[rest[0]].readySet.Acquire()
			require.True(p, ok, line)
			p.leases[words[0]+rest[0]] = append(p.leases[words[0]+rest[0]], lease)
		}
	case "ends":
		ls := p.leases[words[0]+rest[0]]
		for _, l := range ls[:number(rest[1])] {
			require.True(p, l.Release(), line)
		}
		p.leases[words[0]+rest[0]] = ls[number(rest[1]):]
	case "has":
		require.Equal(p, number(rest[1]), int(p.endpoint(words[0], rest[0]).InFlight), line)
	case "closes":
		r.endpointSet.Close()
		delete(p.sets, words[0])
	default:
		require.Fail(p, "no such line: "+line)
	}
}

func number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		panic(fmt.Sprintf("%q is not a number", word))
	}
	return n
}

func (p *listings) setOf(name string) *listing {
	if p.sets[name] == nil {
		p.sets[name] = &listing{endpointSet: p.ledger.NewEndpointSet(name), now: map[string]*listedEndpoint{}}
	}
	return p.sets[name]
}

// list tells the endpoint set what has changed, as a balancer does: an endpoint that
// is listed as before is not mentioned.
func (p *listings) list(r *listing, endpoints []string) {
	p.shuffle(len(endpoints), func(i, j int) { endpoints[i], endpoints[j] = endpoints[j], endpoints[i] })
	next := map[string]*listedEndpoint{}
	var joins []string
	var eps []state.Identity
	for _, e := range endpoints {
		if s, ok := r.now[e]; ok {
			next[e] = s
			continue
		}
		joins, eps = append(joins, e), append(eps, endpointOf(e))
	}
	by := map[*state.Member]*listedEndpoint{}
	var leave []*state.Member
	for e, s := range r.now {
		if next[e] == nil {
			leave, by[s.member] = append(leave, s.member), s
		}
	}
	for i, m := range r.endpointSet.Update(leave, eps) {
		s := by[m]
		if s == nil {
			p.views++
			s = &listedEndpoint{member: m, readySet: r.endpointSet.NewReadySet(p.views), priority: p.views}
			s.readySet.Set(m, 1, joins[i])
		}
		next[joins[i]] = s
	}
	r.now = next
}

func endpointOf(word string) state.Identity {
	id, addrs, ok := strings.Cut(word, "@")
	if !ok {
		id, addrs = "", word
	}
	return state.Identity{ID: id, Addrs: strings.Split(addrs, "+")}
}

// endpoint returns the endpoint of a listed endpoint: a member's ready set tells it apart.
func (p *listings) endpoint(set, endpoint string) state.EndpointSnapshot {
	p.Helper()
	s := p.sets[set].now[endpoint]
	require.NotNil(p, s, "%s does not list %s", set, endpoint)
	for _, n := range p.ledger.Snapshot().Endpoints {
		for _, m := range n.Members {
			if m.Ready && m.Priority == s.priority {
				return n
			}
		}
	}
	require.Fail(p, "no endpoint", "%s %s", set, endpoint)
	return state.EndpointSnapshot{}
}

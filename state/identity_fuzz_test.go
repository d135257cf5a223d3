package state_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// Bounds of the random lists: small, so that endpoints meet often.
const (
	fuzzSets   = 3
	fuzzListed = 4
	fuzzAddrs  = "abcdef"
	fuzzIDs    = "uvw"
)

// identityFuzz plays random lists, acquires and releases on two ledgers that
// differ in the order in which their lists name endpoints.
type identityFuzz struct {
	*testing.T
	ops    []byte
	sides  [2]*listings
	leases [2][]state.Lease
}

func playIdentities(t *testing.T, ops []byte) {
	p := &identityFuzz{T: t, ops: ops}
	for i := range p.sides {
		p.sides[i] = newListings(t, uint64(i))
	}
	for step := 0; len(p.ops) > 0; step++ {
		p.step()
		for i, s := range p.sides {
			require.NoError(t, s.ledger.Check(), "step %d, side %d", step, i)
			require.EqualValues(t, len(p.leases[i]), s.ledger.Snapshot().InFlight, "step %d", step)
		}
		require.Equal(t, p.seen(0), p.seen(1), "step %d: the order of a list decided", step)
	}
	p.end()
}

func (p *identityFuzz) next(n int) int {
	if len(p.ops) == 0 {
		return 0
	}
	b := p.ops[0]
	p.ops = p.ops[1:]
	return int(b) % n
}

func (p *identityFuzz) step() {
	name := string(rune('x' + p.next(fuzzSets)))
	switch op := p.next(10); {
	case op < 3:
		p.list(name)
	case op < 7:
		p.acquire(name)
	case op < 9:
		if n := len(p.leases[0]); n > 0 {
			at := p.next(n)
			for i := range p.leases {
				require.True(p, p.leases[i][at].Release())
				require.False(p, p.leases[i][at].Release())
				p.leases[i] = slices.Delete(p.leases[i], at, at+1)
			}
		}
	default:
		for _, s := range p.sides {
			s.line(name + " closes")
		}
	}
}

// list gives an endpoint set a random list on both sides. The counts are those that
// were there, each on one endpoint as before; an endpoint that is listed as before
// keeps its own.
func (p *identityFuzz) list(name string) {
	list := p.endpoints()
	for _, s := range p.sides {
		before, kept := loadsOf(s), map[string]int64{}
		for e := range s.setOf(name).now {
			if slices.Contains(list, e) {
				kept[e] = s.endpoint(name, e).InFlight
			}
		}
		s.list(s.sets[name], slices.Clone(list))
		require.Equal(p, before, loadsOf(s), "counts merge, split or vanish")
		for e, n := range kept {
			require.Equal(p, n, s.endpoint(name, e).InFlight, "%s changed its endpoint", e)
		}
	}
}

// endpoints returns a random list. As in a balancer's, no id and no set of
// addresses without an id is in it twice.
func (p *identityFuzz) endpoints() []string {
	var list []string
	ids := map[string]bool{}
	for range p.next(fuzzListed + 1) {
		var addrs []string
		for range 1 + p.next(3) {
			addrs = append(addrs, string(fuzzAddrs[p.next(len(fuzzAddrs))]))
		}
		slices.Sort(addrs)
		e := strings.Join(slices.Compact(addrs), "+")
		if i := p.next(3 * len(fuzzIDs)); i < len(fuzzIDs) {
			id := string(fuzzIDs[i])
			if ids[id] {
				continue
			}
			ids[id] = true
			e = id + "@" + e
		}
		if !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}

// loadsOf returns the counts of the ledger's loaded endpoints, sorted.
func loadsOf(s *listings) []int64 {
	var counts []int64
	for _, n := range s.ledger.Snapshot().Endpoints {
		if n.InFlight > 0 {
			counts = append(counts, n.InFlight)
		}
	}
	slices.Sort(counts)
	return counts
}

// acquire takes one lease of the same endpoint on both sides.
func (p *identityFuzz) acquire(name string) {
	var listed []string
	for e := range p.sides[0].setOf(name).now {
		listed = append(listed, e)
	}
	if len(listed) == 0 {
		return
	}
	slices.Sort(listed)
	e := listed[p.next(len(listed))]
	for i, s := range p.sides {
		lease, _, ok := s.sets[name].now[e].readySet.Acquire()
		require.True(p, ok)
		p.leases[i] = append(p.leases[i], lease)
	}
}

// seen returns each listed endpoint's load on a side, and all loads.
func (p *identityFuzz) seen(side int) map[string]int64 {
	s := p.sides[side]
	got := map[string]int64{}
	for name, r := range s.sets {
		entries := map[string]bool{}
		for e := range r.now {
			n := s.endpoint(name, e)
			got[name+" "+e] = n.InFlight
			entries[fmt.Sprint(n)] = true
		}
		require.Len(p, entries, len(r.now), "two endpoints of %s share one", name)
	}
	return got
}

// end takes everything away.
func (p *identityFuzz) end() {
	for i, s := range p.sides {
		for _, r := range s.sets {
			r.endpointSet.Close()
		}
		require.NoError(p, s.ledger.Check())
		for _, l := range p.leases[i] {
			require.True(p, l.Release())
		}
		require.NoError(p, s.ledger.Check())
		require.Empty(p, s.ledger.Snapshot().Endpoints)
	}
}

func TestRandomListsKeepIdentity(t *testing.T) {
	for range 40 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			playIdentities(t, script(seed, 60))
		})
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 0, 1, 8, 0, 3, 0, 0, 3, 0, 0, 0, 2, 0, 0, 8, 0, 1, 8})
	f.Add(script(1, 50))
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) <= 1024 {
			playIdentities(t, ops)
		}
	})
}

package state

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// body is a ledger with all that Check looks at: members of two weights and many
// loads, a free lease entry, an id, and an endpoint that has left.
type body struct {
	*Ledger
	roster *EndpointSet
	view   *ReadySet
	ms     []*Member // the last of class 2, others of class 1
	gone   *endpoint // has leases only
	named  *endpoint
	lease  Lease
}

const bodySize = 48

func newBody() *body {
	b := &body{Ledger: newLedger("")} // not in the registry
	b.roster = b.NewEndpointSet("test")
	b.view = b.roster.NewReadySet(0)
	b.named = b.add(Identity{ID: "u", Addrs: []string{"a", "b"}}, 1, 0)
	b.add(Identity{Addrs: []string{"c"}}, 1, 0)
	for i := range bodySize {
		b.add(Identity{Addrs: []string{fmt.Sprint(i)}}, 1, i)
	}
	b.gone = b.add(Identity{Addrs: []string{"gone"}}, 1, 1)
	last := len(b.ms) - 1
	b.roster.Update(b.ms[last:], nil)
	b.ms = b.ms[:last]
	b.add(Identity{Addrs: []string{"heavy"}}, 2, 1)
	b.view.Remove(b.ms[bodySize]) // the only one with its load
	b.lease, _, _ = b.view.Acquire()
	b.lease.Release()
	return b
}

func (b *body) add(e Identity, weight uint32, load int) *endpoint {
	m := b.roster.Update(nil, []Identity{e})[0]
	for range load {
		b.mu.Lock()
		b.lend(m.endpoint, b.roster)
		b.mu.Unlock()
	}
	b.view.Set(m, weight, nil)
	b.ms = append(b.ms, m)
	return m.endpoint
}

func (b *body) node() *endpoint { return b.ms[5].endpoint }

// corruptions break one thing each; Check must say so.
var corruptions = map[string]struct {
	corrupt func(b *body)
	says    string
}{
	"count":               {func(b *body) { b.node().inFlight++ }, "counts add up to"},
	"count against place": {func(b *body) { b.node().inFlight++; b.leases++ }, "and penalty 0"},
	"count below 0":       {func(b *body) { b.gone.inFlight, b.leases = -1, b.leases-2 }, "count -1"},
	"live total":          {func(b *body) { b.leases-- }, "counts add up to"},
	"lost node":           {func(b *body) { delete(b.endpoints, b.gone) }, "counts add up to"},
	"useless node":        {func(b *body) { b.endpoints[&endpoint{ledger: b.Ledger}] = struct{}{} }, "without members and leases"},
	"free slot":           {func(b *body) { b.free[0].endpoint = b.node() }, "free slot"},

	"id of another endpoint": {func(b *body) { b.byID["u"] = b.node() }, `id "u" leads to`},
	"id of no endpoint":      {func(b *body) { b.byID["v"] = &endpoint{id: "v"} }, `id "v" leads to`},
	"id not indexed":         {func(b *body) { delete(b.byID, "u") }, "not found by its id"},
	"address not indexed":    {func(b *body) { delete(b.byAddr, "b") }, "is not found by"},
	"address of another":     {func(b *body) { b.byAddr["zz"] = []*endpoint{b.node()} }, `address "zz" leads to`},
	"address of no endpoint": {func(b *body) { b.byAddr["zz"] = []*endpoint{{addrs: []string{"zz"}}} }, `address "zz" leads to`},
	"address nobody lists":   {func(b *body) { b.named.addrs = []string{"a", "b", "z"}; b.byAddr["z"] = []*endpoint{b.named} }, "no member lists"},

	"member's node":          {func(b *body) { b.ms[5].endpoint = b.ms[6].endpoint }, "member of another endpoint"},
	"member without node":    {func(b *body) { b.ms[5].endpoint = nil }, "is not its endpoint's"},
	"node's member twice":    {func(b *body) { b.node().members = append(b.node().members, b.ms[5]) }, "two members of endpoint set"},
	"member that leaves":     {func(b *body) { b.ms[5].leaves = true }, "still leaves"},
	"member without a place": {func(b *body) { b.ms[5].handle = order.None }, "has handle -1"},
	"draining in an order":   {func(b *body) { b.ms[5].weight = 0 }, "with weight 0, 3 of"},
	"not ready in an order":  {func(b *body) { b.ms[5].readySet = nil }, "has handle"},
	"lost member":            {func(b *body) { delete(b.roster.members, b.ms[5]) }, "members in orders"},

	"node's lost member":      {func(b *body) { delete(b.roster.members, b.ms[5]) }, "that endpoint set \"test\" does not have"},
	"view of no endpoint set": {func(b *body) { b.roster.readySets = nil }, "has a handle and no ready set"},

	"handle":                  {func(b *body) { b.ms[5].handle++ }, "is not at handle"},
	"lost place":              {func(b *body) { b.node().places = nil }, "0 places for 1 members"},
	"weight in the order":     {func(b *body) { b.ms[5].weight = 7 }, "with weight 7 stands in class 1"},
	"load in the order":       {func(b *body) { b.node().inFlight++; b.node().load++; b.leases++ }, "stands at"},
	"place of another":        {func(b *body) { b.node().places[0].handle++ }, "is not at handle"},
	"another member's handle": {func(b *body) { b.ms[5].readySet.order.SetValue(b.ms[5].handle, b.ms[6].choice()) }, "is not at handle"},
}

func TestCheckSeesEachCorruption(t *testing.T) {
	for name, tc := range corruptions {
		t.Run(name, func(t *testing.T) {
			b := newBody()
			require.NoError(t, b.Check())
			tc.corrupt(b)
			require.ErrorContains(t, b.Check(), tc.says)
		})
	}
}

// Check follows what is there: it is content with all of it going away.
func TestCheckOfALedgerThatEnds(t *testing.T) {
	b := newBody()
	b.roster.Close()
	require.NoError(t, b.Check())
	require.Len(t, b.endpoints, bodySize+1, "all but a, c and 0 have leases")
}

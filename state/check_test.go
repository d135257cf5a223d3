package state

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// body is a ledger with all that Check looks at: two classes of weights, many
// loads, one of them with several members, lanes, a spare bucket, a free lease entry,
// an id, and an endpoint that has left.
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

func (b *body) order() *order   { return &b.view.order }
func (b *body) node() *endpoint { return b.ms[5].endpoint }
func (b *body) class() *class   { return b.classOf(b.ms[0]) }
func (b *body) heavy() *class   { return b.classOf(b.ms[len(b.ms)-1]) }
func (b *body) seat() *seat     { return &b.order().seats[b.ms[5].seat] }
func (b *body) low() *bucket    { return b.bucket(b.class().low) }
func (b *body) head() *seat     { return &b.order().seats[b.low().head] }
func (b *body) tail() *seat     { return &b.order().seats[b.low().tail] }
func (b *body) onLane() *bucket { return b.bucket(b.class().lanes[0]) }

func (b *body) bucket(i int32) *bucket { return &b.order().buckets[i] }

func (b *body) classOf(m *Member) *class {
	o := b.order()
	return &o.classes[o.buckets[o.seats[m.seat].bucket].class]
}

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
	"member without a place": {func(b *body) { b.ms[5].seat = none }, "has seat -1"},
	"draining in an order":   {func(b *body) { b.ms[5].weight = 0 }, "with weight 0, 3 of"},
	"not ready in an order":  {func(b *body) { b.ms[5].readySet = nil }, "has seat"},
	"lost member":            {func(b *body) { delete(b.roster.members, b.ms[5]) }, "eligible members"},

	"node's lost member":      {func(b *body) { delete(b.roster.members, b.ms[5]) }, "that endpoint set \"test\" does not have"},
	"view of no endpoint set": {func(b *body) { b.roster.readySets = nil }, "has a seat and no ready set"},

	"bucket not on its lane": {func(b *body) { b.class().lanes[0] = none }, "on the lanes"},
	"leaf's score":           {func(b *body) { b.order().winners.scores[0][1] = 7 }, "has score 7"},
	"leaf without a class":   {func(b *body) { b.order().winners.scores[0][2] = 7 }, "leaf 2 has score 7"},
	"match by score":         {func(b *body) { w := &b.order().winners; w.scores[1][0] = 7 }, "was won by"},
	"match by waiting":       {func(b *body) { w := &b.order().winners; w.leaf[1][0] ^= 1 }, "was won by"},

	"seat":               {func(b *body) { b.ms[5].seat++ }, "is not on seat"},
	"lost place":         {func(b *body) { b.node().places = nil }, "0 places for 1 seats"},
	"weight of a class":  {func(b *body) { b.ms[5].weight = 7 }, "with weight 7 stands in class 1"},
	"first by score":     {func(b *body) { b.order().top ^= 1 }, "not the best one"},
	"no first":           {func(b *body) { b.order().top = none }, "classes in use"},
	"match of many":      {func(b *body) { b.order().many = false }, "classes in use"},
	"first by waiting":   {func(b *body) { b.order().seats[b.bucket(b.heavy().low).head].stamp = 0 }, "not the best one"},
	"class's quantum":    {func(b *body) { b.order().byWeight[1] = 0 }, "is found by another weight"},
	"spare bucket":       {func(b *body) { b.order().spare = b.class().low }, "is in use"},
	"lost spare bucket":  {func(b *body) { b.order().spare = none }, "spare of"},
	"lost class":         {func(b *body) { b.order().classes = append(b.order().classes, class{}) }, "free of"},
	"class's size":       {func(b *body) { b.class().size++ }, "class 1: size"},
	"order of buckets":   {func(b *body) { b.low().load = 1 << 20 }, "is out of order"},
	"bucket's neighbour": {func(b *body) { b.bucket(b.low().next).prev = none }, "is out of order"},
	"lost bucket": {func(b *body) {
		next := b.bucket(b.low().next).next
		b.low().next, b.bucket(next).prev = next, b.class().low
	}, "class 1: size"},
	"order on a lane":   {func(b *body) { b.onLane().load = 1 << 20 }, "on lane 0"},
	"neighbour on lane": {func(b *body) { b.onLane().express[0].prev = b.class().low }, "on lane 0"},

	"bucket's size":    {func(b *body) { b.low().size++ }, "has size"},
	"bucket's tail":    {func(b *body) { b.low().tail = none }, "has size"},
	"bucket's class":   {func(b *body) { b.low().class++ }, "is out of order"},
	"member's bucket":  {func(b *body) { b.tail().bucket = b.heavy().low }, "is broken at"},
	"member's place":   {func(b *body) { b.tail().prev = none }, "is broken at"},
	"order of waiting": {func(b *body) { b.head().stamp = 1 << 40 }, "is broken at"},
	"member's load":    {func(b *body) { b.seat().bucket = b.class().low }, "stands at"},
}

// drawn reports whether chance has given b what the corruptions need: a lane
// that does not begin with the lowest bucket, and a first member of class 1
// with an equal in class 2.
func (b *body) drawn() bool {
	c := b.class()
	o := b.order()
	return len(c.lanes) > 0 && c.lanes[0] != none && c.lanes[0] != c.low &&
		o.score(0) == o.score(1) && o.headStamp(0) != o.headStamp(1) && o.first().member.seat == b.low().head
}

func TestCheckSeesEachCorruption(t *testing.T) {
	for name, tc := range corruptions {
		t.Run(name, func(t *testing.T) {
			b := newBody()
			for try := 0; !b.drawn(); try++ {
				require.Less(t, try, 1000)
				b = newBody()
			}
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

package state

import (
	"cmp"
	"container/heap"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// connecting is the members of a ready set that connect and for which RPCs may wait,
// the next one to wait for first.
type connecting struct {
	members []*Member
	until   time.Duration // how long RPCs may wait, by the ledger's clock
}

// memberConnecting is a member's part in a start-up: while it connects, and as long as
// RPCs have a lease on it that waited for it.
type memberConnecting struct {
	readySet *ReadySet
	weight   uint32
	index    int // in the ready set's heap; notConnecting once it is ready
	score    float64
	rank     uint32 // among its equals
	reserved map[*reservation]struct{}
	readyAt  time.Duration // by the ledger's clock
}

// SetConnecting makes m, which is not ready, a member of the ready set for which RPCs
// may wait until a point of time: while the endpoint set has RPCs in flight and m
// scores lower than every ready member, [EndpointSet.AcquireOrQueue] reserves them a
// place there, which is counted as in flight. They get it when m is made ready. The
// time holds for all of the ready set's. Set and Remove end it; so do a weight of 0 and a drain.
func (v *ReadySet) SetConnecting(m *Member, weight uint32, until time.Time) {
	l := v.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.endpoint == nil || m.set != v.set || v.set.closed {
		return
	}
	if m.readySet != nil {
		m.leaveReadySet()
	}
	v.connecting.until = until.Sub(l.clock.epoch)
	c, drains := m.connecting, weight == 0 || m.drained
	if c != nil && (c.readySet != v || drains) {
		m.stopConnecting()
		c = nil
	}
	if drains {
		return
	}
	if c == nil || c.index == notConnecting {
		c = m.beginConnecting(v)
	}
	c.weight = weight
	m.rescore()
}

func (m *Member) beginConnecting(v *ReadySet) *memberConnecting {
	s := v.set.startupNow()
	s.connecting++
	m.endpoint.connecting++
	if m.connecting == nil {
		m.connecting = &memberConnecting{readySet: v}
	}
	c := m.connecting
	c.rank = rand.Uint32() // so that channels that start together do not move in step
	heap.Push(&v.connecting, m)
	return c
}

// connects reports whether RPCs may wait for m.
func (m *Member) connects() bool { return m.connecting != nil && m.connecting.index != notConnecting }

// reserved returns how many RPCs wait for m, or are to take it up.
func (m *Member) reserved() int64 {
	if m.connecting == nil {
		return 0
	}
	return int64(len(m.connecting.reserved))
}

// connected ends the waiting for m, which is ready or not to be waited for. What RPCs
// have reserved there stays.
func (m *Member) connected() {
	c := m.connecting
	if c == nil || c.index == notConnecting {
		return
	}
	heap.Remove(&c.readySet.connecting, c.index)
	m.endpoint.connecting--
	m.set.startup.connecting--
	c.readyAt = m.set.ledger.clock.read()
	m.forgetConnecting()
}

// stopConnecting is connected, and takes back what was reserved: the RPCs choose anew.
func (m *Member) stopConnecting() {
	m.connected()
	m.takeBackReserved()
}

// forgetConnecting ends m's part in the start-up, and that itself, when nothing is left
// of them.
func (m *Member) forgetConnecting() {
	if c := m.connecting; c != nil && c.index == notConnecting && len(c.reserved) == 0 {
		m.connecting = nil
	}
	if s := m.set.startup; s != nil && s.connecting == 0 && len(s.reservations) == 0 {
		m.set.startup = nil
		delete(m.set.ledger.starting, m.set)
	}
}

// rescore brings the score of m, which connects, in line with its load, weight and cap.
func (m *Member) rescore() {
	c := m.connecting
	c.score = m.connectingScore()
	heap.Fix(&c.readySet.connecting, c.index)
}

// connectingScore returns the score of m, which connects; at its cap that is beyond all.
func (m *Member) connectingScore() float64 {
	load := m.endpoint.load
	if load.rpcs() >= m.limit {
		return math.Inf(1)
	}
	return float64(load.sum()+1) / float64(m.connecting.weight)
}

// rescore does so for n's members.
func (n *endpoint) rescore() {
	for _, m := range n.members {
		if m.connects() {
			m.rescore()
		}
	}
}

// updateConnecting brings m's part in the start-up in line with what has changed: m is
// ready, or has another cap, or is ready elsewhere than RPCs have reserved it, or not
// any more.
func (m *Member) updateConnecting() {
	if m.connects() && m.readySet == nil {
		m.rescore()
		return
	}
	m.connected()
	switch c := m.connecting; {
	case c == nil:
	case m.eligible() != c.readySet:
		m.takeBackReserved()
	default:
		m.connectReserved()
	}
}

// connectReserved gives m's connection to the RPCs that have waited for it, the first
// before the others, as far as it has room. The others choose anew.
func (m *Member) connectReserved() {
	byArrival := func(a, b *reservation) int { return cmp.Compare(a.arrival, b.arrival) }
	for _, res := range slices.SortedFunc(maps.Keys(m.connecting.reserved), byArrival) {
		switch s := res.lease.entry; {
		case s.connection != nil:
		case m.connection.full():
			res.end()
		default:
			s.connection = m.connection
			s.connection.begin()
		}
	}
}

// notConnecting is the heap's index of a member that is not in it.
const notConnecting = -1

// Len, Less, Swap, Push and Pop are for container/heap.
func (c *connecting) Len() int { return len(c.members) }

func (c *connecting) Less(i, j int) bool {
	a, b := c.members[i].connecting, c.members[j].connecting
	return a.score < b.score || a.score == b.score && a.rank < b.rank
}

func (c *connecting) Swap(i, j int) {
	c.members[i], c.members[j] = c.members[j], c.members[i]
	c.members[i].connecting.index, c.members[j].connecting.index = i, j
}

func (c *connecting) Push(m any) {
	m.(*Member).connecting.index = len(c.members)
	c.members = append(c.members, m.(*Member))
}

func (c *connecting) Pop() any {
	last := len(c.members) - 1
	m := c.members[last]
	c.members[last] = nil
	c.members = c.members[:last]
	m.connecting.index = notConnecting
	return m
}

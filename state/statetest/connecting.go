package statetest

import (
	"math"
	"slices"
	"time"
)

// connecting is a member's part in a start-up.
type connecting struct {
	waitedFor bool // it connects
	readySet  int
	weight    uint32
	readyAt   time.Duration
	reserved  []*reservation // some may outlast the connecting
}

// SetConnecting makes an address one that RPCs may wait for until a point of time.
func (m *model) SetConnecting(id, readySet int, addr string, weight uint32, until time.Duration) {
	defer m.settle()
	r := m.sets[id]
	mb := r.members[addr]
	m.remove(mb)
	r.readySets[readySet].until = until
	c := &mb.connecting
	drains := weight == 0 || mb.drained
	if c.waitedFor && (c.readySet != readySet || drains) {
		m.stopConnecting(mb)
	}
	if !drains {
		c.waitedFor, c.readySet, c.weight = true, readySet, weight
		r.updateStartup()
	}
}

// connected ends the waiting for mb.
func (m *model) connected(mb *member) {
	if c := &mb.connecting; c.waitedFor {
		c.waitedFor, c.readyAt = false, m.now
		mb.set.updateStartup()
	}
}

// stopConnecting is connected for one that RPCs do not get.
func (m *model) stopConnecting(mb *member) {
	m.connected(mb)
	for len(mb.connecting.reserved) > 0 {
		m.endReservation(mb.connecting.reserved[0])
	}
}

// updateConnecting follows what has become of mb: RPCs get it where they wait for it.
func (m *model) updateConnecting(mb *member) {
	switch c := &mb.connecting; {
	case c.waitedFor && mb.readySet == none:
	case mb.eligible() && mb.readySet == c.readySet:
		m.connected(mb)
		m.connectReserved(mb)
	default:
		m.stopConnecting(mb)
	}
}

// connectReserved gives mb's connection to those that have waited, the first before the
// others, as far as it has room. The others choose anew.
func (m *model) connectReserved(mb *member) {
	for _, res := range slices.Clone(mb.connecting.reserved) {
		switch {
		case res.lease.connection != nil:
		case mb.connection.full():
			m.endReservation(res)
		default:
			res.lease.connect(mb.connection)
		}
	}
}

// score is what mb, which connects, is compared by: beyond all at its cap.
func (c *connecting) score(mb *member) float64 {
	if mb.overCap() {
		return math.Inf(1)
	}
	return float64(mb.endpoint.load()+1) / float64(c.weight)
}

package statetest

import (
	"fmt"
	"slices"
	"testing/synctest"

	"github.com/leastconn/grpc-leastconn/state"
)

// connection is one that a member has or had.
type connection struct {
	member   *member // whose it is, nil once it is not
	inFlight int
	others   int
	limit    int // none: any number of streams
	number   int // of the member's
}

func newConnection(mb *member) *connection { return &connection{member: mb, limit: none} }

func (c *connection) full() bool { return c.fullWith(0) }

func (c *connection) fullWith(failed int) bool {
	return c.limit != none && c.inFlight+c.others+failed >= c.limit
}

// failed returns how many penalties are of RPCs that mb's connection had.
func (mb *member) failed() int {
	failed := 0
	for _, p := range mb.endpoint.penalties {
		if p.on == mb.connection {
			failed++
		}
	}
	return failed
}

// count changes how many leases have c.
func (c *connection) count(by int) {
	c.inFlight += by
	c.updateMember()
}

func (c *connection) updateMember() {
	if c.member != nil {
		c.member.updateEligibility()
	}
}

func (c *connection) snapshot(age float64) state.ConnectionSnapshot {
	return state.ConnectionSnapshot{
		InFlight: int64(c.inFlight), Limit: int64(c.limit), Others: int64(c.others), Full: c.full(), Number: uint64(c.number), AgeSeconds: age,
	}
}

// Connect gives an address another connection.
func (m *model) Connect(mb *member) *connection {
	defer m.settle()
	mb.connection.member = nil
	number := mb.connection.number + 1
	mb.connection = newConnection(mb)
	mb.connection.number = number
	m.changed(mb)
	return mb.connection
}

// Room takes up another limit of a connection, or what else takes room there.
func (m *model) Room(c *connection) {
	defer m.settle()
	if c.member != nil {
		m.changed(c.member)
	}
}

func (m *model) changed(mb *member) {
	mb.updateEligibility()
	m.updateConnecting(mb)
	m.revoke(mb)
}

// HangUp closes a connection.
func (m *model) HangUp(c *connection) {
	defer m.settle()
	if c.member != nil {
		m.remove(c.member)
	}
}

// scriptConnection is a connection, until it is closed and no RPC has it.
type scriptConnection struct {
	*state.Connection
	model  *connection
	closed bool
	idle   bool // somebody was told
}

// connect gives an address another connection.
func (s *script) connect(id int) error {
	if addr := s.listed(id); addr != "" {
		s.newConnection(id, addr)
		if s.next(2) == 0 {
			return s.setRoom(len(s.connections) - 1)
		}
	}
	return nil
}

func (s *script) newConnection(id int, addr string) {
	c := s.sets[id].members[addr].NewConnection()
	s.connections = append(s.connections, &scriptConnection{Connection: c, model: s.model.Connect(s.model.sets[id].members[addr])})
}

// reopen gives an address another connection when its own was closed: no RPC is given
// to one that was.
func (s *script) reopen(id int, addr string) {
	own := s.model.sets[id].members[addr].connection
	if slices.ContainsFunc(s.connections, func(c *scriptConnection) bool { return c.closed && c.model == own }) {
		s.newConnection(id, addr)
	}
}

// room changes the limit of a connection, or what else takes room there.
func (s *script) room(int) error {
	if len(s.connections) == 0 {
		return nil
	}
	return s.setRoom(s.next(len(s.connections)))
}

// streamLimits are those that servers give.
var streamLimits = []int{0, 1, 1, 2, 2, 3, 5, 100}

func (s *script) setRoom(i int) error {
	c := s.connections[i]
	switch {
	case s.next(3) > 0:
		c.model.limit = of(s, streamLimits)
		c.SetLimit(uint32(c.model.limit))
	case c.model.others == 0:
		c.model.others = 1
		c.AddOthers(1)
	default:
		c.model.others = 0
		c.AddOthers(-1)
	}
	s.model.Room(c.model)
	return nil
}

// hangUp closes a connection.
func (s *script) hangUp(int) error {
	open := slices.DeleteFunc(slices.Clone(s.connections), func(c *scriptConnection) bool { return c.closed })
	if len(open) == 0 {
		return nil
	}
	c := of(s, open)
	if mb := c.model.member; mb != nil {
		s.onOneEndpoint(mb.set.id)
	}
	c.closed = true
	idle := c.Close(func() { c.idle = true })
	s.model.HangUp(c.model)
	if idle {
		s.connections = slices.DeleteFunc(s.connections, func(o *scriptConnection) bool { return o == c })
	}
	if want := c.model.inFlight == 0; idle != want {
		return fmt.Errorf("a connection with %d RPCs is idle: %t", c.model.inFlight, idle)
	}
	return nil
}

// checkConnections asserts that whoever has closed a connection is told when no RPC has
// it any more, and no earlier.
func (s *script) checkConnections() error {
	synctest.Wait()
	for _, c := range s.connections {
		if want := c.closed && c.model.inFlight == 0; c.idle != want {
			return fmt.Errorf("a connection with %d RPCs, closed: %t, has told that it is idle: %t", c.model.inFlight, c.closed, c.idle)
		}
	}
	s.connections = slices.DeleteFunc(s.connections, func(c *scriptConnection) bool { return c.idle })
	return nil
}

package state

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// Connection is one transport to a member's endpoint, with the RPCs that were given to
// the endpoint while it was the member's. RPCs may outlive that: after a GOAWAY the
// member has another one, and they run on.
type Connection struct {
	// What a pick touches, in one line of memory.
	inFlight  int64       // live leases on it
	picks     uint64      // of the member on it, since these were last taken
	fullAt    int64       // from how many on the server takes no more; noLimit: any number
	limit     int64       // the server's, of streams; noLimit without one
	idle      func()      // called when no RPC has it any more; nil unless it is closed
	next      *Connection // the same transport, in the ledger that it has moved to
	member    *Member     // whose connection it is; nil once it is not
	succeeded bool
	ended     bool // no RPC is given to it any more

	mu       *sync.Mutex // the ledger's; it guards the rest
	others   int64       // what else takes room
	moved    int64       // of others, live leases of ledgers before
	failed   int64       // its RPCs whose failures weigh on the endpoint still
	turnover turnover
	number   uint64    // of the member's connections: 1 is the first
	began    time.Time // zero for what stands before any
}

// NewConnection notes that m's endpoint has a new connection. RPCs that are given to m
// from now on have it, and those that were given to m before keep the one before.
func (m *Member) NewConnection() *Connection {
	mu := m.set.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	c := &Connection{mu: mu, limit: noLimit, fullAt: noLimit, number: m.connection.number + 1, began: time.Now()}
	if m.endpoint != nil {
		m.connection.leave()
		m.connection, c.member = c, m
		m.updateChoice()
		m.changed()
	}
	return c
}

// leave ends the connection's part in the member: what is in flight lives on.
func (c *Connection) leave() {
	c.member.set.lookAhead(false, c.turnover.ahead > 0)
	c.member.picks += c.picks
	c.member = nil
}

// SetLimit tells how many streams the server takes on the connection at one time.
// Without a call, and by math.MaxUint32, it takes any number. While no more RPCs may begin there, the member is
// full: those that may not wait for room are given to it all the same, and begin when
// the server lets them.
func (c *Connection) SetLimit(streams uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit = int64(streams); streams == math.MaxUint32 {
		c.limit = noLimit
	}
	c.updateRoom()
}

// AddOthers adds to the number of streams on the connection that are no leases, and
// take room. It is 0 at first.
func (c *Connection) AddOthers(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others += int64(n)
	c.updateRoom()
}

// MoveTo gives the connection to m, a member of another ledger. What is in flight stays
// counted where it is, and takes room here until it ends. No RPC that waits may have a
// lease on it.
func (c *Connection) MoveTo(m *Member) *Connection {
	to := m.NewConnection()
	c.mu.Lock()
	others, moved, limit := c.others+c.inFlight, c.moved+c.inFlight, c.limit
	number, began, ended := c.number, c.began, c.ended
	c.next = to
	c.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	to.others += others
	to.moved += moved
	to.limit = limit
	to.number, to.began, to.ended = number, began, ended
	to.updateRoom()
	return to
}

// movedEnded notes the end of an RPC that a ledger before has on the connection. It
// returns where it must be noted next.
func (c *Connection) movedEnded() (next *Connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved--
	c.others--
	c.updateRoom()
	c.checkIdle()
	return c.next
}

// updateRoom takes up the limit and what takes room beside the leases.
func (c *Connection) updateRoom() {
	was := c.full()
	c.fullAt = noLimit
	if c.limit != noLimit {
		c.fullAt = c.limit - c.others + c.turnover.ahead
	}
	if m := c.member; m != nil && m.endpoint != nil && (c.full() != was || m.fullnessChanged()) {
		m.changed()
	}
}

// full reports whether the server takes no more RPCs on the connection.
func (c *Connection) full() bool { return c.inFlight >= c.fullAt }

// begin counts a lease.
func (c *Connection) begin() {
	c.inFlight++
	if c.fullAt != noLimit {
		c.updateMember()
	}
}

// end counts a lease no more.
func (c *Connection) end() {
	c.inFlight--
	if c.fullAt != noLimit {
		c.updateMember()
	}
	if c.idle != nil {
		c.checkIdle()
	}
}

// fail changes how many failures take room on the connection. Those of other channels do
// not: their RPCs may fail while this one's do not.
func (c *Connection) fail(by int64) {
	c.failed += by
	if c.fullAt != noLimit {
		c.updateMember()
	}
}

// updateMember has the member be full, or full no more, if the connection, which has a
// limit, makes it so.
func (c *Connection) updateMember() {
	if m := c.member; m != nil && m.fullnessChanged() {
		m.updateEligibility()
	}
}

// checkIdle tells whoever has closed the connection when no RPC has it any more.
func (c *Connection) checkIdle() {
	if c.idle != nil && c.inFlight+c.moved == 0 {
		go c.idle()
	}
}

// End notes that the connection has left READY, as by a GOAWAY of the server: RPCs of
// sessions that have it are to go on elsewhere. Close does so, too.
func (c *Connection) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// Close takes the member out of its ready set, if the connection is its: no RPC is given
// to it any more. It reports whether no RPC has the connection; else idle is called once
// none has, on a goroutine of its own. It must be called once at most.
func (c *Connection) Close(idle func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if m := c.member; m != nil && m.readySet != nil {
		m.leaveReadySet()
	}
	if c.inFlight+c.moved == 0 {
		return true
	}
	c.idle = idle
	return false
}

// Succeeded reports whether an RPC has on the connection.
func (c *Connection) Succeeded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.succeeded
}

// check asserts that the connection counts the leases that have it.
func (c *Connection) check(leases int64) error {
	fullAt := int64(noLimit)
	if c.limit != noLimit {
		fullAt = c.limit - c.others + c.turnover.ahead
	}
	if c.inFlight != leases || c.fullAt != fullAt || c.moved < 0 || c.moved > c.others {
		return fmt.Errorf("a connection with %d of %d leases, full at %d, not %d, with %d of %d others moved", c.inFlight, leases, c.fullAt, fullAt, c.moved, c.others)
	}
	return nil
}

func (c *Connection) snapshot(now time.Time) ConnectionSnapshot {
	s := ConnectionSnapshot{InFlight: c.inFlight, Limit: -1, Others: c.others, Full: c.full(), Number: c.number}
	if c.number > 0 && !c.ended {
		s.AgeSeconds = now.Sub(c.began).Seconds()
	}
	if c.limit != noLimit {
		s.Limit = c.limit
	}
	return s
}

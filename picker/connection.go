package picker

import (
	"math"
	"sync/atomic"

	"google.golang.org/grpc/balancer"
)

// Connection is a SubConn that children pick, with the number of RPCs that have
// picked it and are not done. Whoever closes it hears when there is none left.
type Connection struct {
	balancer.SubConn                  // as the child knows it
	grpc             balancer.SubConn // as gRPC knows it, or the parent that wraps it
	idle             func()

	rpcs   atomic.Int64 // and closed, from Close on
	served atomic.Bool  // an RPC has succeeded there
}

// closed is added once to the number of RPCs: so one word tells both.
const closed = math.MinInt64

// NewConnection returns the connection that child is to pick. What the picker
// hands to gRPC for it is one level below: the SubConn that the balancer's own
// ClientConn gave. idle is called on a goroutine of its own when the last RPC of a
// closed connection is done, and perhaps again.
func NewConnection(child, grpc balancer.SubConn, idle func()) *Connection {
	return &Connection{SubConn: child, grpc: grpc, idle: idle}
}

// Close keeps further picks from the connection. It reports whether no RPC has it;
// else idle is called once none has. It must be called once at most.
func (c *Connection) Close() (idle bool) { return c.rpcs.Add(closed) == closed }

// Served reports whether an RPC has succeeded on the connection.
func (c *Connection) Served() bool { return c.served.Load() }

// begin counts an RPC that has picked the connection. It reports false when the
// connection is closed.
func (c *Connection) begin() bool {
	if c.rpcs.Add(1) > 0 {
		return true
	}
	c.end()
	return false
}

// finish ends an RPC that was picked there, if that was counted: c may be nil. It
// runs with gRPC's locks held.
func (c *Connection) finish(info balancer.DoneInfo) {
	if c == nil {
		return
	}
	if info.Err == nil && info.BytesReceived && !c.served.Load() {
		c.served.Store(true)
	}
	c.end()
}

// end undoes begin.
func (c *Connection) end() {
	if c.rpcs.Add(-1) == closed {
		go c.idle()
	}
}

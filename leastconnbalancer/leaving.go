package leastconnbalancer

import "time"

// linger is how long a child that has left keeps its connection while RPCs are
// in flight: longer than an RPC takes from its pick to its stream.
const linger = 5 * time.Second

// leaving is a child that has left and keeps its connection for a while.
type leaving struct {
	child *child
	timer *time.Timer
}

// end closes the child now.
func (l leaving) end() {
	if l.timer != nil {
		l.timer.Stop()
		l.child.close()
	}
}

// closeLater closes a child that has left after a while. gRPC lets an RPC hang
// that was picked before its connection is closed and asks for its stream after
// that, if the connection is kept open by other streams. One child of an
// endpoint may linger: lists that flap do not pile up connections.
func (b *leastConn) closeLater(c *child) {
	b.mu.Lock()
	before := b.leaving[c.key]
	if b.leaving == nil {
		b.leaving = map[string]leaving{}
	}
	b.leaving[c.key] = leaving{c, time.AfterFunc(linger, func() {
		b.mu.Lock()
		if b.leaving[c.key].child == c {
			delete(b.leaving, c.key)
		}
		b.mu.Unlock()
		c.close()
	})}
	b.mu.Unlock()
	before.end()
}

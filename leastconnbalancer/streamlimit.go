package leastconnbalancer

import (
	"sync"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/settings"
	"github.com/leastconn/grpc-leastconn/state"
)

// transport is one transport of a SubConn: from its handshake on, as far as its server's
// limit of streams is heard, else from when it is READY.
type transport struct {
	balancer *leastConn
	owner    *connection // whose transport it is

	// mu is the only lock that gRPC's reader takes here, since a SubConn's shutdown waits
	// for the reader. The ledger's mutex comes after it.
	mu         sync.Mutex
	limit      uint32            // of streams
	changed    bool              // since limitChanged looked last
	telling    bool              // limitChanged runs
	connection *state.Connection // in the ledger; nil before the SubConn is READY
}

func newTransport(cn *connection) *transport {
	return &transport{balancer: cn.child.parent, owner: cn, limit: settings.NoLimit}
}

// SetLimit takes up the server's limit. It is called before gRPC hears of it.
func (t *transport) SetLimit(streams uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit = streams
	if t.connection != nil {
		t.updateLimitLocked()
		t.changed = true
		if !t.telling {
			t.telling = true
			go t.limitChanged()
		}
	}
}

// updateLimit takes up the configuration.
func (t *transport) updateLimit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.updateLimitLocked()
}

func (t *transport) updateLimitLocked() {
	limit := t.limit
	if t.balancer.ignoreStreamLimits.Load() {
		limit = settings.NoLimit
	}
	t.connection.SetLimit(limit)
}

// connect makes the transport the connection of a member. It reports whether its server
// has a limit.
func (t *transport) connect(m *state.Member) (limited bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.connection = m.NewConnection()
	t.updateLimitLocked()
	return t.limit != settings.NoLimit
}

// moveTo makes it that of a member of another ledger.
func (t *transport) moveTo(m *state.Member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.connection = t.connection.MoveTo(m)
	t.updateLimitLocked()
}

// counted returns the transport in the ledger.
func (t *transport) counted() *state.Connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.connection
}

// limitChanged is for a limit that the server has changed. Whether the server is asked for
// reports depends on it, too. Of changes that come faster than they are taken up, the last counts.
func (t *transport) limitChanged() {
	for {
		t.mu.Lock()
		limit, changed := t.limit, t.changed
		t.changed, t.telling = false, changed
		t.mu.Unlock()
		if !changed {
			return
		}
		t.balancer.streamLimitChanged(limit)
		t.owner.updateReports()
	}
}

// streamLimitChanged is for a limit that a server has changed: RPCs may wait from now on.
func (b *leastConn) streamLimitChanged(streams uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.load.set == nil {
		return
	}
	if logger.V(detail) {
		logger.Infof("[%s] a server has changed its limit of streams to %d", b.target, streams)
	}
	b.startWakerLocked()
	b.publishLocked()
}

// applyStreamLimitLocked takes up whether servers' limits count.
func (b *leastConn) applyStreamLimitLocked(ignore bool) {
	if b.ignoreStreamLimits.Swap(ignore) == ignore {
		return
	}
	for _, c := range b.children.listed {
		if c.current != nil {
			c.current.transport.updateLimit()
		}
	}
}

// allows reports whether the server allows so many streams.
func (t *transport) allows(streams uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.limit >= streams
}

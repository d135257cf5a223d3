package leastconnbalancer

import (
	"google.golang.org/grpc/connectivity"

	"github.com/leastconn/grpc-leastconn/state"
)

// use takes up the configuration. With another resource key the balancer moves
// to that key's ledger with the children that stay; RPCs in flight stay counted
// where they are.
func (b *leastConn) use(key string, cfg *Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if failover := cfg.priorityFailover(); b.failover != failover {
		b.failover = failover
		for _, l := range b.levels {
			l.stop()
		}
	}
	guards := cfg.guards()
	guards.Wake = b.waker.signal()
	b.limit = cfg.maxInFlight()
	if b.set != nil && b.key == key {
		if b.guards != guards {
			b.guards = guards
			b.set.SetGuards(guards)
		}
		b.confineAll()
		return
	}
	b.guards = guards
	b.move(key)
}

// move takes the balancer to the ledger of the key. Caller holds mu.
func (b *leastConn) move(key string) {
	old := b.set
	b.key, b.set = key, state.Open(key).NewEndpointSet(b.target)
	b.set.SetGuards(b.guards)
	cs := make([]*child, 0, len(b.children))
	eps := make([]state.Identity, 0, len(b.children))
	for _, c := range b.children {
		if c.update == b.update {
			cs = append(cs, c)
			eps = append(eps, identityOf(c.endpoint))
		}
	}
	for _, l := range b.levels {
		l.readySet = b.set.NewReadySet(l.priority)
	}
	b.link()
	for i, m := range b.set.Update(nil, eps) {
		c := cs[i]
		c.member, c.capped = m, 0
		b.confine(c)
		switch c.state {
		case connectivity.Ready:
			c.level.readySet.Set(m, c.weight, c.picker)
		case connectivity.TransientFailure:
			m.StartSlowly()
		}
	}
	if old != nil {
		old.Close()
	}
}

// confine gives the child's member its cap, if that is another one. Caller holds
// mu.
func (b *leastConn) confine(c *child) {
	limit := valueOr(c.limit, b.limit)
	if c.capped != limit && c.member != nil {
		b.awaken()
		c.capped = limit
		c.member.SetMaxInFlight(limit)
	}
}

func (b *leastConn) confineAll() {
	for _, c := range b.listed {
		b.confine(c)
	}
}

// serve tells the endpoint set where RPCs that wait may find room. Caller holds mu.
func (b *leastConn) serve(l *level) {
	if b.served != l.picker {
		b.served = l.picker
		b.set.SetQueueSets(l.readySets...)
	}
}

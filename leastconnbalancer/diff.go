package leastconnbalancer

import (
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/state"
)

// diff is what a list changes.
type diff struct {
	listed  []*child // by index; nil where the endpoint joins or is a duplicate
	changed []change // endpoints that stay, in another form
	joins   []change // endpoints that are new or have other addresses
}

// change is an endpoint in its new form.
type change struct {
	index    int
	child    *child // nil when it joins
	key      string
	endpoint resolver.Endpoint
	facts    facts
}

// diff compares a list with the children, which it only marks. Of endpoints
// that are listed twice the first holds.
func (b *leastConn) diff(endpoints []resolver.Endpoint) (diff, error) {
	b.update++
	d := diff{listed: make([]*child, len(endpoints))}
	joins := map[string]bool{}
	for i, ep := range endpoints {
		if c := b.listedAt(i); c != nil && c.update < b.update && !joins[c.key] && sameEndpoint(c.endpoint, ep) {
			d.keep(i, c, b.update)
			continue
		}
		key := keyOf(ep)
		c := b.children[key]
		if joins[key] || c != nil && c.update == b.update {
			continue
		}
		if c != nil && sameEndpoint(c.endpoint, ep) {
			d.keep(i, c, b.update)
			continue
		}
		f, err := factsOf(ep)
		if err != nil {
			return diff{}, err
		}
		ch := change{index: i, key: key, endpoint: ep, facts: f}
		if c != nil && sameAddrs(c.endpoint, ep) {
			ch.child = c
			d.keep(i, c, b.update)
			d.changed = append(d.changed, ch)
			continue
		}
		joins[key] = true
		d.joins = append(d.joins, ch)
	}
	return d, nil
}

// listedAt returns the child that stood at index i of the last list, if one did.
func (b *leastConn) listedAt(i int) *child {
	if i < len(b.listed) {
		return b.listed[i]
	}
	return nil
}

func (d *diff) keep(i int, c *child, update uint64) {
	c.update = update
	d.listed[i] = c
}

// apply makes the children those of the list. The policies of new and changed
// ones are left to be told.
func (b *leastConn) apply(d diff) {
	for _, ch := range d.changed {
		b.applyChange(ch.child, ch)
	}
	left := map[*state.Member]*child{}
	joined := 0
	for key, c := range b.children {
		if c.update != b.update {
			left[c.member] = c
			delete(b.children, key)
		}
	}
	for i, m := range b.enroll(left, d.joins) {
		ch := d.joins[i]
		c := left[m]
		if c == nil {
			c = b.newChild(m)
			joined++
		}
		delete(left, m)
		c.key, c.update = ch.key, b.update
		b.applyChange(c, ch)
		b.children[c.key] = c
		d.listed[ch.index] = c
	}
	for m, c := range left {
		if connected := b.leave(c); connected && m.LeftBusy() {
			b.closeLater(c)
		} else {
			c.close()
		}
	}
	b.listed = d.listed[:0]
	for _, c := range d.listed {
		if c != nil {
			b.listed = append(b.listed, c)
		}
	}
	b.prune()
	b.refail()
	b.logList(joined, len(left), len(d.changed)+len(d.joins)-joined)
}

// enroll tells the endpoint set who leaves and who joins.
func (b *leastConn) enroll(left map[*state.Member]*child, joins []change) []*state.Member {
	if len(left) == 0 && len(joins) == 0 {
		return nil
	}
	leave := make([]*state.Member, 0, len(left))
	for m := range left {
		leave = append(leave, m)
	}
	eps := make([]state.Identity, len(joins))
	for i, ch := range joins {
		eps[i] = identityOf(ch.endpoint)
	}
	return b.set.Update(leave, eps)
}

// set gives a child its endpoint and what the resolver says of it.
func (b *leastConn) applyChange(c *child, ch change) {
	c.endpoint, c.stale = ch.endpoint, true
	b.mu.Lock()
	defer b.mu.Unlock()
	old := c.level
	if old != nil {
		old.remove(c)
	}
	c.level, c.weight, c.limit = b.levelOf(ch.facts.priority), ch.facts.weight, ch.facts.limit
	b.confine(c)
	c.level.add(c)
	c.level.settle()
	if old != nil {
		old.settle()
	}
	if c.state == connectivity.Ready {
		c.level.readySet.Set(c.member, c.weight, c.picker)
	}
}

// newChild builds the pick_first policy of an endpoint.
func (b *leastConn) newChild(m *state.Member) *child {
	c := &child{ClientConn: b.cc, parent: b, member: m, state: connectivity.Connecting}
	c.policy = b.builder.Build(c, b.opts)
	return c
}

// leave ends a child's part in the aggregate and reports whether it was READY.
func (b *leastConn) leave(c *child) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	connected := c.state == connectivity.Ready
	b.setState(c, connectivity.Shutdown, nil)
	c.detach()
	if b.failed == c {
		b.failed = nil
	}
	return connected
}

// refail finds a failed taker to quote when the last one is none any more.
func (b *leastConn) refail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed != nil && b.failed.weight > 0 {
		return
	}
	b.failed = nil
	for _, c := range b.listed {
		if c.state == connectivity.TransientFailure && c.weight > 0 {
			b.failed = c
			return
		}
	}
}

package leastconnbalancer

import (
	"maps"
	"slices"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/state"
)

// children are those of the last list. They are only used in calls of gRPC on
// the balancer, which never overlap; listed, which changes with the balancer's mu held,
// by others, too.
type children struct {
	byKey  map[string]*child
	listed []*child // by index in the last list
	update uint64   // number of the list
}

// diff is what a list changes.
type diff struct {
	listed  []*child   // by index; nil where the endpoint joins or is a duplicate
	kept    int        // children in it
	changed []change   // endpoints that stay, in another form
	joins   []newEntry // endpoints that are new or have other addresses
}

// change is a child that stays, with its endpoint in the new form.
type change struct {
	child    *child
	endpoint endpoint
}

// newEntry is an endpoint that joins, at its index in the list.
type newEntry struct {
	index    int
	endpoint endpoint
}

// diff compares a list with the children, which it only marks. Of endpoints
// that are listed twice the first holds.
func (cs *children) diff(endpoints []resolver.Endpoint) (diff, error) {
	cs.update++
	d := diff{listed: make([]*child, len(endpoints))}
	joins := map[string]bool{}
	for i, ep := range endpoints {
		if c := cs.listedAt(i); c != nil && c.update < cs.update && !joins[c.endpoint.key] && sameEndpoint(c.endpoint.Endpoint, ep) {
			d.keep(i, c, cs.update)
			continue
		}
		e := identify(ep)
		c := cs.byKey[e.key]
		if joins[e.key] || c != nil && c.update == cs.update {
			continue
		}
		if c != nil && sameEndpoint(c.endpoint.Endpoint, ep) {
			d.keep(i, c, cs.update)
			continue
		}
		if err := e.read(); err != nil {
			return diff{}, err
		}
		if c != nil && slices.Equal(c.endpoint.identity.Addrs, e.identity.Addrs) {
			d.keep(i, c, cs.update)
			d.changed = append(d.changed, change{c, e})
			continue
		}
		joins[e.key] = true
		d.joins = append(d.joins, newEntry{i, e})
	}
	return d, nil
}

// listedAt returns the child that stood at index i of the last list, if one did.
func (cs *children) listedAt(i int) *child {
	if i < len(cs.listed) {
		return cs.listed[i]
	}
	return nil
}

func (d *diff) keep(i int, c *child, update uint64) {
	c.update = update
	d.listed[i] = c
	d.kept++
}

// staying returns the children that the last list keeps as they are, or in
// another form, and their identities until now.
func (cs *children) staying() ([]*child, []state.Identity) {
	stay := make([]*child, 0, len(cs.byKey))
	ids := make([]state.Identity, 0, len(cs.byKey))
	for _, c := range cs.byKey {
		if c.update == cs.update {
			stay = append(stay, c)
			ids = append(ids, c.endpoint.identity)
		}
	}
	return stay, ids
}

// takeLeft takes the children out that the list does not have.
func (cs *children) takeLeft(d diff) map[*state.Member]*child {
	if d.kept == len(cs.byKey) {
		return nil
	}
	left := map[*state.Member]*child{}
	for key, c := range cs.byKey {
		if c.update != cs.update {
			left[c.member] = c
			delete(cs.byKey, key)
		}
	}
	return left
}

// setListed makes the children that the list has those of the next diff.
func (cs *children) setListed(byIndex []*child) {
	cs.listed = slices.DeleteFunc(byIndex, func(c *child) bool { return c == nil })
}

// applyDiff makes the children those of the list. The policies of new and
// changed ones are left to be told.
func (b *leastConn) applyDiff(d diff) {
	cs := &b.children
	for _, ch := range d.changed {
		b.setEndpoint(ch.child, ch.endpoint)
	}
	left := cs.takeLeft(d)
	var joined []*child
	for i, m := range b.updateEndpoints(left, d.joins) {
		e := d.joins[i]
		c := left[m]
		if c == nil {
			c = b.newChild(m)
			joined = append(joined, c)
		}
		delete(left, m)
		c.update = cs.update
		b.setEndpoint(c, e.endpoint)
		cs.byKey[e.endpoint.key] = c
		d.listed[e.index] = c
	}
	for _, c := range left {
		b.remove(c)
		c.policy.close()
	}
	b.mu.Lock()
	cs.setListed(d.listed)
	b.updateDrainsLocked()
	b.levels.pruneLocked()
	b.levels.updateStartupsLocked()
	b.outage.refreshLastErrorLocked(cs.listed)
	b.mu.Unlock()
	b.logList(joined, slices.Collect(maps.Values(left)), len(d.changed)+len(d.joins)-len(joined))
}

// updateEndpoints tells the endpoint set who leaves and who joins.
func (b *leastConn) updateEndpoints(left map[*state.Member]*child, joins []newEntry) []*state.Member {
	if len(left) == 0 && len(joins) == 0 {
		return nil
	}
	leave := make([]*state.Member, 0, len(left))
	for m := range left {
		leave = append(leave, m)
	}
	join := make([]state.Identity, len(joins))
	for i, e := range joins {
		join[i] = e.endpoint.identity
	}
	return b.load.set.Update(leave, join)
}

// setEndpoint gives a child its endpoint, with what the resolver says of it.
func (b *leastConn) setEndpoint(c *child, e endpoint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := c.level
	if old != nil {
		old.remove(c)
		c.readdressLocked(e)
	}
	c.endpoint, c.dirty = e, true
	c.level = b.levels.atLocked(e.facts.priority, b.load.set)
	b.setLimitLocked(c)
	c.level.add(c)
	if old != nil && (old != c.level || !c.eligible()) {
		old.connectedLocked(c)
	}
	c.level.waitLocked(c)
	c.level.updateFailover()
	if old != nil {
		old.updateFailover()
	}
	if c.state == connectivity.Ready {
		c.setReadyLocked()
	}
}

// remove ends a child's part in the aggregate.
func (b *leastConn) remove(c *child) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setStateLocked(c, connectivity.Shutdown, nil)
	c.detachLocked()
	if b.outage.lastFailed == c {
		b.outage.lastFailed = nil
	}
}

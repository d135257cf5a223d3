package state

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Check returns what is wrong in the ledger, nil when all invariants hold. It
// costs O(n) in all that the ledger holds, under its mutex: it is for tests.
func (l *Ledger) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	var sum int64
	for n := range l.nodes {
		sum += n.inFlight
		errs = append(errs, n.check())
	}
	if sum != l.leases || sum < 0 {
		errs = append(errs, fmt.Errorf("counts add up to %d with %d live leases", sum, l.leases))
	}
	for id, n := range l.byID {
		if _, ok := l.nodes[n]; !ok || n.id != id {
			errs = append(errs, fmt.Errorf("id %q leads to a node with id %q, in the ledger: %t", id, n.id, ok))
		}
	}
	for a, ns := range l.byAddr {
		for _, n := range ns {
			if _, ok := l.nodes[n]; !ok || !slices.Contains(n.addrs, a) {
				errs = append(errs, fmt.Errorf("address %q leads to a node with %q, in the ledger: %t", a, n.addrs, ok))
			}
		}
	}
	for r := range l.rosters {
		errs = append(errs, r.check())
	}
	for _, s := range l.free {
		if s.node != nil {
			errs = append(errs, errors.New("a free slot holds a node"))
		}
	}
	return errors.Join(errs...)
}

func (n *node) check() error {
	var errs []error
	if n.inFlight < 0 {
		errs = append(errs, fmt.Errorf("node %q: count %d", n.addrs, n.inFlight))
	}
	if n.inFlight == 0 && len(n.members) == 0 {
		errs = append(errs, fmt.Errorf("node %q is in the ledger without members and leases", n.addrs))
	}
	for _, a := range n.addrs {
		if !slices.Contains(n.ledger.byAddr[a], n) {
			errs = append(errs, fmt.Errorf("node %q is not found by %q", n.addrs, a))
		}
		listed := slices.ContainsFunc(n.members, func(m *Member) bool { return slices.Contains(m.addrs, a) })
		if !listed && len(n.members) > 0 {
			errs = append(errs, fmt.Errorf("node %q keeps %q, which no member lists", n.addrs, a))
		}
	}
	for i, m := range n.members {
		if m.node != n {
			errs = append(errs, fmt.Errorf("node %q has a member of another node", n.addrs))
		}
		for _, o := range n.members[:i] {
			if o.roster == m.roster {
				errs = append(errs, fmt.Errorf("node %q has two members of roster %q", n.addrs, m.roster.name))
			}
		}
	}
	return errors.Join(errs...)
}

func (r *Roster) check() error {
	var errs []error
	eligible := 0
	for m := range r.members {
		if m.node == nil || !slices.Contains(m.node.members, m) {
			errs = append(errs, fmt.Errorf("roster %q: member %q is not its node's", r.name, m.addrs))
			continue
		}
		if m.leaves {
			errs = append(errs, fmt.Errorf("roster %q: member %q still leaves", r.name, m.addrs))
		}
		if (m.bucket != nil) != (m.view != nil && m.weight > 0) {
			errs = append(errs, fmt.Errorf("roster %q: member %q with weight %d in an order: %t", r.name, m.addrs, m.weight, m.bucket != nil))
		}
		if m.bucket == nil {
			continue
		}
		eligible++
		if m.bucket.load != m.node.inFlight {
			errs = append(errs, fmt.Errorf("roster %q: member %q stands at %d with %d in flight", r.name, m.addrs, m.bucket.load, m.node.inFlight))
		}
	}
	stands := 0
	for _, v := range r.views {
		stands += len(v.order.members)
		errs = append(errs, v.order.check())
	}
	if stands != eligible {
		errs = append(errs, fmt.Errorf("roster %q: %d members stand in orders, %d are eligible", r.name, stands, eligible))
	}
	return errors.Join(errs...)
}

func (o *order) check() error {
	var errs []error
	var best *Member
	counted := 0
	for _, c := range o.classes {
		n, err := c.check()
		errs = append(errs, err)
		counted += n
		if o.winners.classes[c.slot] != c {
			errs = append(errs, fmt.Errorf("class %v is not at its leaf", c.weight))
		}
		if h := c.low.head; best == nil || c.score() < best.bucket.class.score() ||
			c.score() == best.bucket.class.score() && h.stamp < best.stamp {
			best = h
		}
	}
	for i, m := range o.members {
		if m.index != i || m.bucket == nil {
			errs = append(errs, fmt.Errorf("member %q is not at its index", m.addrs))
		} else if d := math.Abs(float64(m.weight) - m.bucket.class.weight); d > nearWeight*m.bucket.class.weight {
			errs = append(errs, fmt.Errorf("member %q with weight %d stands in class %v", m.addrs, m.weight, m.bucket.class.weight))
		}
	}
	if counted != len(o.members) {
		errs = append(errs, fmt.Errorf("%d members in buckets, %d in the order", counted, len(o.members)))
	}
	if first := o.first(); first != best && (first == nil || best == nil ||
		first.bucket.class.score() != best.bucket.class.score() || first.stamp != best.stamp) {
		errs = append(errs, errors.New("the first member is not the best one that waits longest"))
	}
	for b := o.spare; b != nil; b = b.next {
		if b.size != 0 || b.head != nil || b.class != nil {
			errs = append(errs, errors.New("a spare bucket is in use"))
		}
	}
	return errors.Join(errs...)
}

// check returns the number of members, too.
func (c *class) check() (int, error) {
	var errs []error
	members := 0
	var prev *bucket
	for b := c.low; b != nil; prev, b = b, b.next {
		if b.prev != prev || prev != nil && prev.load >= b.load {
			errs = append(errs, fmt.Errorf("class %v: bucket %d is out of order", c.weight, b.load))
		}
		errs = append(errs, b.check(c))
		members += b.size
	}
	for i, b := range c.lanes {
		var last *bucket
		for ; b != nil; last, b = b, b.express[i].next {
			if b.size == 0 || b.express[i].prev != last || last != nil && last.load >= b.load {
				errs = append(errs, fmt.Errorf("class %v: bucket %d is out of order on lane %d", c.weight, b.load, i))
			}
		}
	}
	if members != c.size || members == 0 {
		errs = append(errs, fmt.Errorf("class %v: size %d with %d members", c.weight, c.size, members))
	}
	return members, errors.Join(errs...)
}

func (b *bucket) check(c *class) error {
	n := 0
	var prev *Member
	for m := b.head; m != nil; prev, m = m, m.next {
		n++
		if m.bucket != b || b.class != c || m.prev != prev || prev != nil && prev.stamp > m.stamp {
			return fmt.Errorf("class %v: bucket %d is broken at %q", c.weight, b.load, m.addrs)
		}
	}
	if n != b.size || n == 0 || b.tail != prev {
		return fmt.Errorf("class %v: bucket %d has size %d with %d members", c.weight, b.load, b.size, n)
	}
	return nil
}

package state

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// penalty is those of an endpoint that end together and are of one connection's RPCs.
type penalty struct {
	until      time.Duration // by the ledger's clock
	connection *Connection
	failed     int64 // RPCs
	units      int64 // that they have left
}

// addPenalty leaves the units of an attempt that failed on c, and is not counted on n any
// more, as a penalty until a point of time. It reports whether it did.
//
// It leaves none when n, without it, comes last already in every ready set that may
// choose n: a penalty puts an endpoint behind the busiest one, further by no more than
// what one RPC costs. Where an endpoint is busy, at its cap, it always leaves one.
func (l *Ledger) addPenalty(n *endpoint, c *Connection, until time.Duration, units int64) bool {
	if l.clock.read() >= until || n.isWorst() {
		return false
	}
	until = (until + Tick - 1).Truncate(Tick)
	i, _ := slices.BinarySearchFunc(n.penalties, until, func(p penalty, t time.Duration) int {
		return cmp.Compare(p.until, t)
	})
	for i < len(n.penalties) && n.penalties[i].until == until && n.penalties[i].connection != c {
		i++
	}
	if i == len(n.penalties) || n.penalties[i].until != until {
		n.penalties = slices.Insert(n.penalties, i, penalty{until: until, connection: c})
	}
	n.penalties[i].failed++
	n.penalties[i].units += units
	t := n.load
	t.failed++
	t.penalty += units
	n.setLoad(t)
	c.fail(1)
	l.penalized[n] = struct{}{}
	l.startClock()
	return true
}

// expirePenalties ends the penalties whose time is over, step by step, and gives the room
// that they took to RPCs that wait: at the end, or when others are let in between.
func (l *Ledger) expirePenalties() {
	steps := l.inSteps()
	room := false
	grant := func() {
		if room && l.waiting > 0 {
			grantIn(slices.Collect(maps.Keys(l.sets))...)
		}
		room = false
	}
	steps.settle = grant
	for n := range l.penalized {
		over, left := 0, n.load
		for over < len(n.penalties) && n.penalties[over].until <= l.clock.now {
			p := &n.penalties[over]
			left.failed -= p.failed
			left.penalty -= p.units
			p.connection.fail(-p.failed)
			over++
		}
		if over == 0 {
			steps.did(unitLook)
			continue
		}
		n.penalties = slices.Delete(n.penalties, 0, over)
		if len(n.penalties) == 0 {
			delete(l.penalized, n)
		}
		n.setLoad(left)
		room = true
		steps.did(unitChange * (1 + len(n.places)))
	}
	grant()
}

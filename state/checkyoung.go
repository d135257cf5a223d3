package state

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// checkYoung asserts that the ready set knows reports exactly while its endpoint set uses
// them, and of its members only.
func (v *ReadySet) checkYoung() error {
	y := v.young
	if (y != nil) != (v.set.reports > 0) {
		return fmt.Errorf("ready set with reports every %v has some: %t", v.set.reports, y != nil)
	}
	if y == nil {
		return nil
	}
	known, eligible := 0, 0
	for i := range y.entries {
		if y.entries[i].is != youngAbsent {
			known++
		}
	}
	for m := range v.set.members {
		if m.eligibleIn != v {
			continue
		}
		h := m.anyHandle()
		eligible++
		if int(h) >= len(y.entries) || y.entries[h].is == youngAbsent && v.set.entering == 0 {
			return fmt.Errorf("member %q is not known to reports", m.addrs)
		}
		if e := &y.entries[h]; e.is == youngTold && e.weight != v.order.ClassWeight(h) {
			return fmt.Errorf("member %q reports with weight %v, not %v", m.addrs, e.weight, v.order.ClassWeight(h))
		}
	}
	if known > eligible || known < eligible && v.set.entering == 0 {
		return fmt.Errorf("%d members are known to reports of %d", known, eligible)
	}
	if y.interval != v.set.reports {
		return fmt.Errorf("reports are taken to come every %v, not %v", y.interval, v.set.reports)
	}
	return y.check()
}

// check asserts that lists and sums are those of the entries.
func (y *young) check() error {
	is := map[youngState]int{}
	var sum figures
	weight, logged := 0.0, 0
	for h := range y.entries {
		e := &y.entries[h]
		is[e.is]++
		if e.logged {
			logged++
		}
		switch {
		case e.is == youngSilent && (int(e.index) >= len(y.silent) || y.silent[e.index] != order.Handle(h)):
			return fmt.Errorf("the silent handle %d is not at %d", h, e.index)
		case e.is == youngTold != e.logged && e.is != youngSilent:
			return fmt.Errorf("handle %d, which is %d, is in the log: %t", h, e.is, e.logged)
		case e.is == youngTold:
			sum.others += e.others
			sum.rate += e.rate
			weight += e.weight
		}
	}
	if sum != y.sum || y.told != is[youngTold] || len(y.silent) != is[youngSilent] {
		return fmt.Errorf("%d that have told add up to %v, %d of %d to %v", is[youngTold], sum, y.told, len(y.silent), y.sum)
	}
	if d := math.Abs(weight - y.weight.Value()); d > 1e-12*weight {
		return fmt.Errorf("their weights are %v, not %v", weight, y.weight.Value())
	}
	return errors.Join(
		y.log.check(y.entries, logged, func(e *youngEntry) bool { return e.logged }),
		y.fresh.check(y.entries, is[youngFresh], func(e *youngEntry) bool { return e.is == youngFresh }))
}

// check asserts that the list has that many entries, all of a kind, the oldest first.
func (l *youngList) check(entries []youngEntry, size int, are func(*youngEntry) bool) error {
	n, last, at := 0, order.None, time.Duration(math.MinInt64)
	for h := l.oldest; h != order.None && n <= size; last, h = h, entries[h].next {
		n++
		e := &entries[h]
		if !are(e) || e.older != last || e.at < at {
			return fmt.Errorf("handle %d of %v is out of order", h, at)
		}
		at = e.at
	}
	if n != size || l.youngest != last {
		return fmt.Errorf("a list of %d reports has %d and ends with %d, not %d", size, n, last, l.youngest)
	}
	return nil
}

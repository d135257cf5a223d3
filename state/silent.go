package state

import (
	"math/rand/v2"
	"time"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// Servers that do not report, or not the truth, are silent: they are chosen as if they
// had what others have.
const (
	silentAfter    = 3  // intervals
	silencedAtOnce = 16 // members that a report may find silent
	loggedAtOnce   = 8  // silent members that a report lends its figures to
)

// silence takes h as silent.
func (y *young) silence(h order.Handle, now time.Duration) {
	y.enter(h, now)
	y.forget(h)
	e := &y.entries[h]
	e.is, e.index = youngSilent, int32(len(y.silent))
	y.silent = append(y.silent, h)
	y.update()
}

// findSilent finds members that have not reported for long.
func (y *young) findSilent(now time.Duration) {
	since := now - silentAfter*y.interval
	y.behind = false
	for _, l := range []*youngList{&y.fresh, &y.log} {
		for k := 0; l.oldest != order.None && y.entries[l.oldest].at <= since; k++ {
			if k == silencedAtOnce {
				y.behind = true
				break
			}
			if h := l.oldest; y.entries[h].is == youngSilent {
				y.unlog(h)
			} else {
				y.silence(h, now)
			}
		}
	}
}

// lend logs silent members with the figures of others, each at random times, once in an
// interval on average. Without that nobody would choose them.
func (y *young) lend(o *choiceOrder, now time.Duration) {
	part := float64(min(now-y.last, y.interval)) / float64(y.interval)
	n := min(loggedAtOnce, int(part*float64(len(y.silent))+rand.Float64()))
	if n == 0 {
		return
	}
	others := y.lent()
	for range n {
		s := y.silent[rand.IntN(len(y.silent))]
		y.unlog(s)
		y.record(s, figures{others: others * o.ClassWeight(s)}, now)
	}
}

// lent returns what silent members are logged with, per weight: the figure of the
// youngest member that has told and is not among the candidates. Beside one that is, they
// would divide by ties what that one gets, and get too little.
func (y *young) lent() float64 {
	last := order.None
	k := 0
	for h := y.log.youngest; h != order.None; h = y.entries[h].older {
		if k++; y.entries[h].is == youngTold {
			if last = h; k > candidates {
				break
			}
		}
	}
	return y.entries[last].others / y.entries[last].weight
}

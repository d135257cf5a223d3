package state

import "time"

// Waking RPCs that wait takes gRPC the longer the more there are: some 1 µs for each, and
// it wakes all. A connection at its server's limit would idle meanwhile. So where very
// many wait and RPCs end all the time, some are given room beyond the limit, in their
// order, and all are woken less often: those begin in the connection, each as one ends.
const (
	turnoverWindow  = 25 * time.Millisecond
	turnoverWindows = 4 // in a row in which RPCs must have ended: 0.1 s
	veryMany        = 256
	wakePause       = 10 * time.Microsecond // for each that waits: a tenth of a core goes into waking
)

// turnover is how many RPCs end on a connection in a window of time.
type turnover struct {
	since   time.Duration // when the window began, by the ledger's clock
	ended   int64         // in it
	windows int           // before it, in a row, in which some ended
	mean    float64       // of these, the latest above all
	ahead   int64         // room beyond the limit
}

// end notes the end of an RPC. It reports whether ahead may have to change, which is so
// once in a window.
func (t *turnover) end(now time.Duration) bool {
	passed := now - t.since
	if passed < turnoverWindow {
		t.ended++
		return false
	}
	if passed >= 2*turnoverWindow { // one without an end
		t.windows, t.mean = 0, 0
	} else {
		t.windows++
		t.mean += (float64(t.ended) - t.mean) / float64(min(t.windows, turnoverWindows))
	}
	t.since, t.ended = now, 1
	return true
}

// ready returns how many RPCs end in a window; 0 while that is not known.
func (t *turnover) ready() int64 {
	if t.windows < turnoverWindows {
		return 0
	}
	return int64(t.mean)
}

// lookAhead takes up that an RPC has ended on the connection, and how many wait.
func (c *Connection) lookAhead(now time.Duration) {
	if !c.turnover.end(now) {
		return
	}
	ahead, m := int64(0), c.member
	if m == nil {
		return
	}
	if m.set.queue.waiting() >= veryMany {
		ahead = min(c.turnover.ready(), c.limit)
	}
	if was := c.turnover.ahead; ahead != was {
		c.turnover.ahead = ahead
		m.set.lookAhead(ahead > 0, was > 0)
		c.updateRoom()
	}
}

// lookAhead counts the connections that look ahead.
func (r *EndpointSet) lookAhead(does, did bool) {
	switch {
	case does && !did:
		r.ahead++
	case did && !does:
		r.ahead--
	}
}

// WakePause returns how long to put off waking the RPCs that wait: no longer than what
// they were given ahead lasts.
func (r *EndpointSet) WakePause() time.Duration {
	mu := r.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	if r.ahead == 0 {
		return 0
	}
	return min(time.Duration(r.queue.waiting())*wakePause, turnoverWindow)
}

package state

import "time"

// An endpoint that fails an RPC which has moved there is shunned by moves for a time, twice as
// long each time it does so once that is over.
const (
	shunFirst  = time.Second
	shunLast   = time.Minute
	shunMemory = time.Minute // after the end of which it is as new
)

type shun struct {
	until  time.Duration // by the ledger's clock
	length time.Duration
}

// noteMoved notes the end of a lease that has moved to n. One that has lived says nothing
// of moves.
func (n *endpoint) noteMoved(s *leaseEntry, how ending) {
	now := n.ledger.clock.read()
	sh := &n.shun
	switch {
	case how == endSucceeded:
		*sh = shun{}
	case how != endFailed || now-s.start >= moveWithin || now < sh.until:
	case sh.length == 0 || now-sh.until > shunMemory:
		*sh = shun{now + shunFirst, shunFirst}
	default:
		sh.length = min(2*sh.length, shunLast)
		sh.until = now + sh.length
	}
}

package statetest

import (
	"math"
	"slices"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// takeUpTime is how long a member that is ready is reserved for those that have waited.
const takeUpTime = time.Second

// startup is the time in which an endpoint set has members that connect, or RPCs that
// wait for them.
type startup struct{ inFlight int }

// reservation is an RPC that waits for a member to connect, or has.
type reservation struct {
	rpc    *rpc
	member *member
	lease  *lease
}

// updateStartup begins the start-up, or ends it.
func (r *endpointSet) updateStartup() {
	connects := func(mb *member) bool { return mb.connecting.waitedFor }
	switch is := len(r.reservations)+len(r.those(connects)) > 0; {
	case is && r.startup == nil:
		r.startup = &startup{}
	case !is:
		r.startup = nil
	}
}

// reservationOf returns what is reserved for an RPC.
func (r *endpointSet) reservationOf(q *rpc) *reservation {
	if i := slices.IndexFunc(r.reservations, func(res *reservation) bool { return res.rpc == q }); i >= 0 {
		return r.reservations[i]
	}
	return nil
}

// reserved has the RPC wait for a member that connects, or get it. When its outcome is
// Empty, it is to choose among the ready.
func (a *acquisition) reserved() state.Outcome {
	v, m := a.readySets[0], a.model
	if res := a.set.reservationOf(a.rpc); res != nil {
		switch c := &res.member.connecting; {
		case c.readySet != v || c.waitedFor && !m.mayWaitFor(a.set, v, a.rpc):
			m.endReservation(res)
		case !c.waitedFor:
			return a.takeUpReserved(res)
		default:
			return state.Reserved
		}
	}
	best, sure := a.toWaitFor(v)
	if len(best) == 0 || !sure && a.outcome != state.Reserved {
		return state.Empty
	}
	m.reserve(a.set.members[a.among(state.Reserved, sorted(best))], a.rpc)
	return state.Reserved
}

// toWaitFor returns the members for one of which the RPC waits, and whether it is sure
// to: of equal ones that it has tried it may meet one first, and not wait.
func (a *acquisition) toWaitFor(readySet int) (best []*member, sure bool) {
	r := a.set
	if s := r.startup; s == nil || s.inFlight == 0 || a.rpc == nil || len(r.waiting()) > 0 || !a.model.mayWaitFor(r, readySet, a.rpc) {
		return nil, false
	}
	lowest := math.Inf(1)
	for _, mb := range r.connectingTo(readySet) {
		switch score := mb.connecting.score(mb); {
		case score < lowest:
			lowest, best = score, []*member{mb}
		case score == lowest:
			best = append(best, mb)
		}
	}
	if lowest >= r.lowestReady(readySet, a.tried) {
		return nil, false
	}
	all := len(best)
	best = slices.DeleteFunc(best, func(mb *member) bool { return slices.Contains(a.tried, mb.endpoint.addr) })
	return best, len(best) == all
}

func (r *endpointSet) connectingTo(readySet int) []*member {
	return r.those(func(mb *member) bool { return mb.connecting.waitedFor && mb.connecting.readySet == readySet })
}

// mayWaitFor reports whether an RPC may wait for members that connect.
func (m *model) mayWaitFor(r *endpointSet, readySet int, q *rpc) bool {
	rest := r.readySets[readySet].until - m.now
	return len(r.connectingTo(readySet)) > 0 && rest > 0 && (q.deadline == 0 || q.deadline-m.now >= 2*rest)
}

// lowestReady returns the score that one who connects must be below. It is the lowest of
// those that have room. An RPC waits for nobody when no member is ready, or when it has
// tried some that have room and one is left. It waits for anybody below a cap when there
// is no room, or when it has tried all that have some.
func (r *endpointSet) lowestReady(readySet int, tried []string) float64 {
	o := r.readySets[readySet].orders[withRoom]
	room := o.in(func(s *seat) bool { return s.selectable })
	untried := slices.DeleteFunc(slices.Clone(room), func(mb *member) bool { return slices.Contains(tried, mb.endpoint.addr) })
	switch {
	case len(room) == 0 && r.count(readySet, (*member).full) == 0, len(untried) > 0 && len(untried) < len(room):
		return 0
	case len(untried) == 0:
		return math.MaxFloat64
	}
	lowest := math.Inf(1)
	for _, mb := range room {
		lowest = min(lowest, float64(mb.endpoint.load()+1)/o.class(mb))
	}
	return lowest
}

// reserve has an RPC wait for mb.
func (m *model) reserve(mb *member, q *rpc) {
	res := &reservation{rpc: q, member: mb, lease: m.newLease(mb.set, mb.endpoint)}
	res.lease.bind(q.cost)
	mb.connecting.reserved = append(mb.connecting.reserved, res)
	mb.set.reservations = append(mb.set.reservations, res)
	q.reservations = append(q.reservations, res)
}

// takeUpReserved gives the RPC the member, which is ready. Its attempt begins now.
func (a *acquisition) takeUpReserved(res *reservation) state.Outcome {
	a.among(state.Chosen, []string{res.member.endpoint.addr})
	res.remove()
	res.lease.start = a.model.now
	a.lease = res.lease
	a.set.readySets[res.member.readySet].picks++
	if len(a.tried) > 0 {
		a.set.retries++
	}
	return state.Chosen
}

func (res *reservation) remove() {
	of := func(all []*reservation) []*reservation {
		return slices.DeleteFunc(all, func(o *reservation) bool { return o == res })
	}
	mb := res.member
	mb.connecting.reserved, mb.set.reservations, res.rpc.reservations = of(mb.connecting.reserved), of(mb.set.reservations), of(res.rpc.reservations)
	mb.set.updateStartup()
}

// endReservation gives the place back.
func (m *model) endReservation(res *reservation) {
	res.remove()
	m.endLease(res.lease)
}

// overdue returns what is reserved and not taken up in time.
func (m *model) overdue(now time.Duration) (all []*reservation) {
	for _, r := range m.sets {
		for _, res := range r.reservations {
			if c := &res.member.connecting; !c.waitedFor && c.readyAt+takeUpTime <= now {
				all = append(all, res)
			}
		}
	}
	return all
}

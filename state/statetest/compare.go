package statetest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/leastconn/grpc-leastconn/state"
)

// Compare returns how a ledger's snapshot differs from the model.
func (m *model) Compare(s state.Snapshot) error {
	errs := []error{m.err}
	m.unsure = false
	var sum, waiting, granted, reserved int
	scores := map[*member]state.MemberSnapshot{}
	for _, n := range s.Endpoints {
		errs = append(errs, m.compareEndpoint(n, scores))
		sum += int(n.InFlight)
	}
	for _, r := range m.sets {
		for _, v := range r.readySets {
			for _, o := range v.orders {
				errs = append(errs, o.compareScores(scores))
			}
		}
	}
	for _, rs := range s.EndpointSets {
		errs = append(errs, m.compareSet(rs))
		waiting += int(rs.Waiting)
		granted += int(rs.Granted)
		reserved += int(rs.Reserved)
	}
	if len(s.Endpoints) != len(m.endpoints) || len(s.EndpointSets) != len(m.sets) {
		errs = append(errs, fmt.Errorf("%d endpoints and %d endpoint sets, want %d and %d", len(s.Endpoints), len(s.EndpointSets), len(m.endpoints), len(m.sets)))
	}
	got := [...]int{int(s.InFlight), int(s.Waiting), int(s.Granted), int(s.Reserved)}
	if want := [...]int{sum, waiting, granted, reserved}; got != want {
		errs = append(errs, fmt.Errorf("in flight, waiting, granted and reserved are %d, want %d", got, want))
	}
	return errors.Join(errs...)
}

// known is what the model knows of an endpoint, too.
type known struct {
	state                                                       state.EndpointState
	drained                                                     bool
	inFlight, units, granted, reserved, penalty, members, picks int
	highest, failures                                           int
	oldest                                                      float64
}

func (m *model) compareEndpoint(s state.EndpointSnapshot, scores map[*member]state.MemberSnapshot) error {
	n := m.endpoints[s.Addresses[0]]
	if n == nil {
		return fmt.Errorf("%q is not known", s.Addresses)
	}
	got := known{s.State, s.Drained, int(s.InFlight), int(s.Units), int(s.Granted), int(s.Reserved), int(s.Penalty), len(s.Members), int(s.Picks), int(s.Highest), int(s.Failures), s.OldestSeconds}
	if want := (known{n.state(), len(n.drains) > 0, len(n.leases), n.units(), n.granted(), n.reserved(), n.penalty(), len(n.members), n.picks, n.highest, n.failures, n.oldest(m.now).Seconds()}); got != want {
		return fmt.Errorf("%s is %+v, want %+v", n.addr, got, want)
	}
	for _, ms := range s.Members {
		for _, mb := range n.members {
			if fmt.Sprint(mb.set.id) != ms.EndpointSet {
				continue
			}
			scores[mb] = ms
			if err := mb.compare(ms); err != nil {
				return fmt.Errorf("%s in endpoint set %s: %w", n.addr, ms.EndpointSet, err)
			}
		}
	}
	return nil
}

// granted returns how many leases of n RPCs that wait have not taken up.
func (n *endpoint) granted() (sum int) {
	for _, mb := range n.members {
		for _, t := range mb.set.granted() {
			if t.lease.on == n {
				sum++
			}
		}
	}
	return sum
}

// reserved returns how many RPCs wait for n to connect, or are to take it up.
func (n *endpoint) reserved() (sum int) {
	for _, mb := range n.members {
		sum += len(mb.connecting.reserved)
	}
	return sum
}

// state returns the best that an endpoint set says of n.
func (n *endpoint) state() state.EndpointState {
	best := state.EndpointDeparted
	for _, mb := range n.members {
		is := state.EndpointNotReady
		switch {
		case mb.eligible():
			is = state.EndpointReady
		case mb.readySet != none:
			is = state.EndpointDraining
		}
		if slices.Index(state.EndpointStates, is) < slices.Index(state.EndpointStates, best) {
			best = is
		}
	}
	return best
}

func (mb *member) compare(s state.MemberSnapshot) error {
	want := state.MemberSnapshot{
		EndpointSet: s.EndpointSet, Ready: mb.readySet != none, MaxInFlight: int64(mb.limit), Full: mb.full(), Connection: mb.connection.snapshot(s.Connection.AgeSeconds),
		SinceSeconds:    s.SinceSeconds,
		EffectiveWeight: s.EffectiveWeight, Score: s.Score, Next: s.Next, SlowStartFactor: s.SlowStartFactor, Report: s.Report,
	}
	if want.Ready {
		want.Priority, want.Weight, want.Draining = uint32(mb.readySet), mb.weight, !mb.eligible()
	}
	room, scored := &mb.seats[withRoom], mb.seats[overfull].placed || mb.seats[noRoom].placed
	if s.Report.Others > 0 || (s.Report.Told || s.Report.Silent) && (mb.set.reports == 0 || !mb.eligible()) {
		return fmt.Errorf("its report is %+v", s.Report)
	}
	if s != want || s.SlowStartFactor != mb.factor || (room.selectable || scored) != (s.Score > 0) || room.placed != (s.EffectiveWeight > 0) {
		return fmt.Errorf("it is %+v, want %+v with factor %v, seats %+v", s, want, mb.factor, mb.seats)
	}
	if room.placed && s.EffectiveWeight != room.class && !(room.either && mb.adopt(s.EffectiveWeight)) {
		return fmt.Errorf("its effective weight is %v, want %v", s.EffectiveWeight, room.class)
	}
	return nil
}

// adopt takes up which of the weights that are near mb's was there first.
func (mb *member) adopt(class float64) bool {
	if math.Abs(mb.effective()-class) > class/(1<<16) {
		return false
	}
	mb.seats[withRoom].either = false
	for kind := range kinds {
		if mb.seats[kind].placed {
			mb.order(kind).adopt(mb, class)
		}
	}
	return true
}

func (v *order) adopt(mb *member, class float64) {
	was := v.class(mb)
	v.seat(mb).class = class
	if v.size(was) == 0 {
		delete(v.waits, was)
	}
	v.waits[class] = wait{}
}

// compareScores compares how far away the turns are, and takes up what chance has
// decided of them. The next pick must be one that is allowed. It is of those that
// penalties alone fill while nobody has room and nobody is busy.
func (v *order) compareScores(score map[*member]state.MemberSnapshot) error {
	for _, mb := range v.free() {
		s := score[mb]
		phase := s.Score*v.class(mb) - float64(mb.endpoint.load())
		w := v.waits[v.class(mb)]
		if want := v.phase(v.class(mb)); w.known && !same(phase, want) {
			return fmt.Errorf("the score of %s is %v: the phase is %v, want %v", mb.endpoint.addr, s.Score, phase, want)
		}
		if phase > 2*least && len(v.waits) > 1 {
			v.waits[v.class(mb)] = wait{phase * v.step(v.class(mb)), true}
		}
	}
	best := v.best(false)
	next, may := 0, v.kind == withRoom || v.set.count(v.readySet, func(mb *member) bool { return mb.eligible() && !mb.full() || mb.busy() }) == 0
	for _, mb := range v.in(func(s *seat) bool { return s.selectable }) {
		if score[mb].Next {
			next++
			if !slices.Contains(best, mb) {
				return fmt.Errorf("%s is next, want one of %q", mb.endpoint.addr, sorted(best))
			}
		}
	}
	if want := may && len(best) > 0 && (v.drawn || len(v.waits) == 1); want != (next == 1) || next > 1 {
		return fmt.Errorf("%d are next of %q, drawn: %t", next, sorted(best), v.drawn)
	}
	return nil
}

func (m *model) compareSet(s state.EndpointSetSnapshot) error {
	for _, r := range m.sets {
		if fmt.Sprint(r.id) != s.Name {
			continue
		}
		picks := 0
		for _, v := range r.readySets {
			picks += v.picks
		}
		picks -= len(r.granted()) + r.lost
		got := [...]int{int(s.Waiting), int(s.Granted), int(s.Reserved), int(s.Picks), int(s.Queued), int(s.RetriesToOtherEndpoint), int(s.Penalties)}
		if want := [...]int{len(r.waiting()), len(r.granted()), len(r.reservations), picks, r.queued, r.retries, r.penalties}; got != want {
			return fmt.Errorf("endpoint set %s: waiting, granted, reserved, picks, queued, elsewhere, penalties are %v, want %v", s.Name, got, want)
		}
		return nil
	}
	return fmt.Errorf("endpoint set %s is not known", s.Name)
}

// addressLoad returns what totals are to say of an endpoint.
func addressLoad(n state.EndpointSnapshot) state.AddressLoad {
	a := state.AddressLoad{Address: n.Address(), InFlight: n.InFlight, Report: n.Report()}
	if m, ok := n.Eligible(); ok {
		a.EffectiveWeight = float64(m.Weight) * m.SlowStartFactor
	}
	for _, m := range n.Members {
		if m.MaxInFlight > 0 && (a.MaxInFlight == 0 || m.MaxInFlight < a.MaxInFlight) {
			a.MaxInFlight = m.MaxInFlight
		}
	}
	return a
}

// compareTotals returns how a ledger's totals differ from its snapshot. No address is
// the first one of two endpoints.
func compareTotals(s state.Snapshot, got state.Totals) error {
	want := state.Totals{InFlight: s.InFlight, Waiting: s.Waiting, Imbalance: s.Imbalance, Fleet: s.Fleet, Endpoints: map[state.EndpointState]int64{}}
	for _, n := range s.Endpoints {
		want.OldestSeconds = max(want.OldestSeconds, n.OldestSeconds)
		want.Endpoints[n.State]++
		want.ByAddress = append(want.ByAddress, addressLoad(n))
	}
	for _, of := range []struct {
		got  *float64
		want float64
	}{{&got.Imbalance, want.Imbalance}, {&got.Fleet.Imbalance, want.Fleet.Imbalance}} {
		if d := math.Abs(*of.got - of.want); d > 1e-9*of.want {
			return fmt.Errorf("an imbalance is %v in the totals, %v in the snapshot", *of.got, of.want)
		}
		*of.got = of.want // sums of floats depend on their order
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("the totals are %+v, want %+v", got, want)
	}
	return nil
}

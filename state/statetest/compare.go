package statetest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/leastconn/grpc-leastconn/state"
)

// Compare returns how a ledger's snapshot differs from the model.
func (m *model) Compare(s state.Snapshot) error {
	errs := []error{m.err}
	m.unsure = false
	sum, waiting := 0, 0
	for _, n := range s.Endpoints {
		errs = append(errs, m.compareEndpoint(n))
		sum += int(n.InFlight)
	}
	for _, rs := range s.EndpointSets {
		errs = append(errs, m.compareSet(rs))
		waiting += int(rs.Waiting)
	}
	if len(s.Endpoints) != len(m.endpoints) || len(s.EndpointSets) != len(m.sets) {
		errs = append(errs, fmt.Errorf("%d endpoints and %d endpoint sets, want %d and %d", len(s.Endpoints), len(s.EndpointSets), len(m.endpoints), len(m.sets)))
	}
	if int(s.InFlight) != sum || int(s.Waiting) != waiting {
		errs = append(errs, fmt.Errorf("%d in flight and %d waiting, want %d and %d", s.InFlight, s.Waiting, sum, waiting))
	}
	return errors.Join(errs...)
}

// known is what the model knows of an endpoint, too.
type known struct {
	state                                      state.EndpointState
	inFlight, granted, penalty, members, picks int
}

func (m *model) compareEndpoint(s state.EndpointSnapshot) error {
	n := m.endpoints[s.Addresses[0]]
	if n == nil {
		return fmt.Errorf("%q is not known", s.Addresses)
	}
	got := known{s.State, int(s.InFlight), int(s.Granted), int(s.Penalty), len(s.Members), int(s.Picks)}
	if want := (known{n.state(), n.inFlight, n.granted(), len(n.penalties), len(n.members), n.picks}); got != want {
		return fmt.Errorf("%s is %+v, want %+v", n.addr, got, want)
	}
	for _, ms := range s.Members {
		for _, mb := range n.members {
			if fmt.Sprint(mb.set.id) != ms.EndpointSet {
				continue
			}
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
		for _, t := range mb.set.granted {
			if t.on == n {
				sum++
			}
		}
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
		EndpointSet: s.EndpointSet, Ready: mb.readySet != none, MaxInFlight: int64(mb.limit), Full: mb.full(),
		Score: s.Score, SlowStartFactor: s.SlowStartFactor,
	}
	if want.Ready {
		want.Priority, want.Weight, want.Draining = uint32(mb.readySet), mb.weight, mb.weight == 0
	}
	if s != want || s.SlowStartFactor != mb.factor || (mb.in != nowhere) != (s.Score > 0) {
		return fmt.Errorf("it is %+v, want %+v with factor %v, in order %d", s, want, mb.factor, mb.in)
	}
	if mb.in == nowhere || s.Score == mb.score() || mb.either && mb.adopt(s.Score) {
		return nil
	}
	return fmt.Errorf("its score is %v, want %v", s.Score, mb.score())
}

// adopt takes up which of the weights that are near mb's was there first: it
// gives the score that mb has.
func (mb *member) adopt(score float64) bool {
	for _, o := range mb.set.selectable(mb.readySet, mb.in) {
		for _, w := range []float64{o.classWeight, o.before, o.effective()} {
			mb.classWeight = w
			if mb.score() == score && math.Abs(mb.effective()-w) <= w/(1<<16) {
				mb.either = false
				return true
			}
		}
	}
	return false
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
		picks -= len(r.granted) + r.lost
		got := [...]int{int(s.Waiting), int(s.Granted), int(s.Picks), int(s.Queued), int(s.RetriesToOtherEndpoint), int(s.Penalties)}
		if want := [...]int{len(r.waiting), len(r.granted), picks, r.queued, r.retries, r.penalties}; got != want {
			return fmt.Errorf("endpoint set %s: waiting, granted, picks, queued, elsewhere, penalties are %v, want %v", s.Name, got, want)
		}
		return nil
	}
	return fmt.Errorf("endpoint set %s is not known", s.Name)
}

package state

import (
	"math"
	"slices"
)

// heldBack reports whether a guard keeps RPCs from the endpoint in the level: an endpoint set
// gives it none there while it is full, or fewer while it starts slowly. It says nothing of
// how level the others are.
func (n EndpointSnapshot) heldBack(priority uint32) bool {
	return slices.ContainsFunc(n.Members, func(m MemberSnapshot) bool {
		return m.Ready && !m.Draining && m.Priority == priority && (m.Full || m.SlowStartFactor < 1)
	})
}

// levelLoad is what an endpoint that may be chosen has in flight, with the priority
// level and the weight that it is chosen by.
type levelLoad struct {
	priority, weight uint32
	inFlight         int64
	units, penalty   int64
	heldBack         bool
	report           ReportSnapshot
	others           int64 // RPCs of others that count, too
}

// firstLevel returns the highest priority level that has endpoints.
func firstLevel(loads []levelLoad) uint32 {
	level := uint32(math.MaxUint32)
	for _, n := range loads {
		level = min(level, n.priority)
	}
	return level
}

// costOfRPC returns what an RPC in flight costs on average, in units.
func costOfRPC(loads []levelLoad) float64 {
	inFlight, units := int64(0), int64(0)
	for _, n := range loads {
		inFlight += n.inFlight
		units += n.units
	}
	if inFlight == 0 {
		return 1
	}
	return float64(units) / float64(inFlight)
}

// imbalance returns by how many RPCs endpoints differ, of the highest priority level that has
// ready ones: the most minus the fewest in flight, each over its weight relative to the mean
// of theirs. With equal weights that is a difference of counts.
//
// Where RPCs have costs it is one of units, in RPCs of their mean cost, which those of others
// are taken to have, too. Endpoints that are held back are left out: others have more because
// these have less, or nothing is to be done about what they have. A penalty fills its endpoint
// up, since RPCs are kept from it so, and does not make it the one with the most.
func imbalance(loads []levelLoad) float64 {
	cost := costOfRPC(loads)
	level := firstLevel(loads)
	count, sum, most, fewest := 0, 0.0, 0.0, math.Inf(1)
	for _, n := range loads {
		if n.priority != level || n.heldBack {
			continue
		}
		count++
		w := float64(n.weight)
		sum += w
		units := float64(n.units) + cost*float64(n.others)
		most = max(most, units/w)
		fewest = min(fewest, (units+float64(n.penalty))/w)
	}
	return max(0, most-fewest) / cost * sum / float64(max(1, count))
}

// fleetImbalance is imbalance with what others have in flight, of the endpoints of the
// highest priority level with ready ones that have told.
func fleetImbalance(loads []levelLoad) float64 {
	level := firstLevel(loads)
	var told []levelLoad
	for _, n := range loads {
		if n.priority == level && n.report.Told {
			n.others = n.report.Others
			told = append(told, n)
		}
	}
	return imbalance(told)
}

package debugpage

import (
	"strconv"

	"github.com/leastconn/grpc-leastconn/state"
)

// capacity is how many RPCs an endpoint has room for.
type capacity struct {
	Limit  int64 // 0: any number
	Server bool  // by its server's limit of streams
}

// capOf returns the lower one of the endpoint's cap and of what servers allow on the
// connections of all channels that may choose it.
func capOf(ep state.EndpointSnapshot) capacity {
	m, ok := ep.Eligible()
	if !ok {
		return capacity{}
	}
	allowed := int64(0)
	for _, other := range ep.Members {
		switch {
		case !other.Ready || other.Draining:
		case other.Connection.Limit < 0: // that channel may add any number
			return capacity{Limit: m.MaxInFlight}
		default:
			allowed += max(0, other.Connection.Limit-other.Connection.Others)
		}
	}
	if m.MaxInFlight > 0 && m.MaxInFlight <= allowed {
		return capacity{Limit: m.MaxInFlight}
	}
	return capacity{Limit: allowed, Server: true}
}

// String is "" without a cap.
func (c capacity) String() string {
	switch {
	case c.Server:
		return strconv.FormatInt(c.Limit, 10) + " server"
	case c.Limit == 0:
		return ""
	}
	return strconv.FormatInt(c.Limit, 10)
}

// capped reports whether a bar can fill towards the cap.
func (c capacity) capped() bool { return c.Limit > 0 }

// scale makes bars of one service comparable. Loads are in units, as scores are: one for
// each RPC, unless calls say more.
type scale struct {
	mean  float64 // weight of those that may be chosen; 1 without one
	fair  float64 // what they would have over weight, were they level; of those that report, where some do
	most  float64 // highest load over weight of all
	told  bool    // some report
	ofRPC float64 // what an RPC in flight costs on average, as one of others is taken to do
}

// sums are over endpoints that may be chosen.
type sums struct{ load, weights, endpoints float64 }

func (s *sums) add(load int64, weight uint32) {
	s.load += float64(load)
	s.weights += float64(weight)
	s.endpoints++
}

func scaleOf(endpoints []state.EndpointSnapshot) scale {
	s := scale{mean: 1, ofRPC: unitsOfRPC(endpoints)}
	var all, told sums
	for _, ep := range endpoints {
		if m, ok := ep.Eligible(); ok {
			all.add(ep.Units, m.Weight)
			if ep.Report().Told {
				told.add(s.load(ep), m.Weight)
			}
		}
	}
	if all.endpoints > 0 {
		s.mean, s.fair = all.weights/all.endpoints, all.load/all.weights
	}
	if told.endpoints > 0 {
		s.fair, s.told = told.load/told.weights, true
	}
	for _, ep := range endpoints {
		s.most = max(s.most, s.perWeight(ep, s.load(ep)+ep.Penalty))
	}
	return s
}

func unitsOfRPC(endpoints []state.EndpointSnapshot) float64 {
	units, inFlight := int64(0), int64(0)
	for _, ep := range endpoints {
		units += ep.Units
		inFlight += ep.InFlight
	}
	return float64(units) / float64(max(1, inFlight))
}

// load returns the units of all that the endpoint is known to have in flight.
func (s scale) load(ep state.EndpointSnapshot) int64 {
	others := ep.Report().Others
	if s.costs() {
		others = int64(float64(others) * s.ofRPC)
	}
	return ep.Units + others
}

// costs reports whether RPCs in flight cost more than one unit.
func (s scale) costs() bool { return s.ofRPC > 1 }

// perWeight returns a load over the endpoint's weight. One that may not be chosen is drawn as if
// it had the mean weight.
func (s scale) perWeight(ep state.EndpointSnapshot, load int64) float64 {
	if m, ok := ep.Eligible(); ok {
		return float64(load) / float64(m.Weight)
	}
	return float64(load) / s.mean
}

// bar is an endpoint's load, in thousandths: of its cap, which counts RPCs; without one, of the
// highest load over weight.
type bar struct {
	Capped   bool
	Load     int // in flight
	Others   int // what others have, after it; not towards a cap, which does not count it
	PenaltyX int // where the penalty begins, after these
	Penalty  int
	Level    int // where the load would be if all were level; 0: not shown, as towards a cap where RPCs have costs
}

func (s scale) bar(ep state.EndpointSnapshot, c capacity) bar {
	_, eligible := ep.Eligible()
	if !c.capped() {
		part := func(load int64) int { return s.thousandths(s.perWeight(ep, load)) }
		b := bar{Load: part(ep.Units), PenaltyX: part(s.load(ep)), Penalty: part(ep.Penalty)}
		b.Others = b.PenaltyX - b.Load
		if eligible {
			b.Level = s.thousandths(s.fair)
		}
		return b
	}
	part := func(rpcs float64) int { return int(min(1, rpcs/float64(c.Limit)) * 1000) }
	b := bar{Capped: true, Load: part(float64(ep.InFlight)), Penalty: part(float64(ep.PenaltyRPCs))}
	b.PenaltyX = b.Load
	b.Penalty = min(b.Penalty, 1000-b.Load)
	if m, _ := ep.Eligible(); !s.told && !s.costs() {
		b.Level = part(s.fair * float64(m.Weight))
	}
	return b
}

// thousandths returns a level in thousandths of the highest.
func (s scale) thousandths(level float64) int {
	if s.most == 0 {
		return 0
	}
	return int(min(1, level/s.most) * 1000)
}

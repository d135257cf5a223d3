package state_test

import (
	"cmp"
	"math"
	"slices"
)

// delivery is one report on its way.
type delivery struct {
	sent, at float64
	server   int
}

// deliver has a client know the last report of each server.
func (f *fleetSim) deliver(c *fleetClient) {
	if f.interval == 0 || c.own == nil {
		return
	}
	var all []delivery
	for i, s := range f.servers {
		if s.silent || !c.ready[i] {
			continue
		}
		k := math.Floor((f.now - f.late - c.phase[i]) / f.interval)
		for k >= 0 && f.lost > 0 && f.isLost(c, i, k) {
			k--
		}
		if sent := c.phase[i] + k*f.interval; k >= 0 && sent > c.fed[i] {
			c.fed[i] = sent
			all = append(all, delivery{sent, sent + f.late, i})
		}
	}
	slices.SortFunc(all, func(a, b delivery) int { return cmp.Compare(a.at, b.at) })
	for _, d := range all {
		s := f.servers[d.server]
		was := s.was(d.sent)
		over := max(f.interval, 1)
		inFlight, rps := int64(was.load), float64(was.begun-s.was(d.sent-over).begun)/over
		if f.lie != nil {
			inFlight, rps = f.lie(d.server, inFlight, rps)
		}
		c.others[d.server] = max(0, inFlight-c.own[d.server])
		c.rule.report(d.server, inFlight, rps, d.at)
	}
}

// isLost draws once for each report.
func (f *fleetSim) isLost(c *fleetClient, server int, k float64) bool {
	x := math.Float64bits(c.phase[server]) ^ uint64(k)*0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return float64(x>>40)/(1<<24) < f.lost
}

// was returns a server's load at a time.
func (s *fleetServer) was(at float64) fleetLoad {
	i, _ := slices.BinarySearchFunc(s.history, at, func(l fleetLoad, t float64) int {
		if l.since <= t {
			return -1
		}
		return 1
	})
	if i == 0 {
		return fleetLoad{}
	}
	return s.history[i-1]
}

package orcaload

import (
	"math"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
)

// The names in reports.
const (
	inFlightMetric      = "in_flight"
	inFlightUtilization = "in_flight_ppm"
)

// What a server can have at most, by far.
const (
	maxInFlight = math.MaxInt32
	maxRPS      = 1e9
)

// read returns what a report tells: the RPCs in flight and how many begin per second, -1 where that
// is not known. It is false for one that does not tell the former, or something that cannot be.
func read(r *v3orcapb.OrcaLoadReport) (inFlight int64, rps float64, ok bool) {
	n, named := r.GetNamedMetrics()[inFlightMetric]
	if !named {
		if n, named = r.GetUtilization()[inFlightUtilization]; !named {
			return 0, 0, false
		}
		n *= 1e6
	}
	if !(n >= 0 && n <= maxInFlight) { // NaN, too
		return 0, 0, false
	}
	rps = r.GetRpsFractional()
	if !(rps > 0 && rps <= maxRPS) {
		rps = -1
	}
	return int64(math.Round(n)), rps, true
}

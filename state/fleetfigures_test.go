package state_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fleetTable = flag.Bool("fleet", false, "the fleet tests print tables of 1,000 clients and 100 servers, which takes most of an hour of one core")
	fleetSeeds = flag.Int("fleetseeds", 5, "how many seeds a figure of these tables is of")
)

// medians returns the median of each figure over the seeds of a table, else the figures
// of one seed.
func medians(first uint64, figures func(seed uint64) []float64) []float64 {
	seeds := 1
	if *fleetTable {
		seeds = *fleetSeeds
	}
	var all [][]float64
	for seed := range seeds {
		for i, x := range figures(first + uint64(seed)) {
			if i == len(all) {
				all = append(all, nil)
			}
			all[i] = append(all[i], x)
		}
	}
	var ms []float64
	for _, xs := range all {
		slices.Sort(xs)
		ms = append(ms, xs[len(xs)/2])
	}
	return ms
}

func row(t *testing.T, name string, xs []float64) {
	cells := []string{}
	for _, x := range xs {
		cells = append(cells, fmt.Sprintf("%6.3f", x))
	}
	t.Logf("| %-28s | %s |", name, strings.Join(cells, " | "))
}

// figure is what a fleet has, and may have at most.
type figure struct {
	name     string
	is, most float64
}

// requireMost requires of a fleet that no figure is beyond its limit. Whether it was chance
// that took one beyond, two more fleets of other seeds tell, both of which must keep all
// limits.
func requireMost(t *testing.T, fleet func(seed uint64) []figure) {
	t.Helper()
	for seed := uint64(1); seed <= 3; seed++ {
		var beyond []string
		for _, f := range fleet(seed) {
			if !(f.is <= f.most) {
				beyond = append(beyond, fmt.Sprintf("%s: %.4g, at most %.4g", f.name, f.is, f.most))
			}
		}
		switch {
		case seed > 1:
			require.Empty(t, beyond, "nor was the first fleet within its limits")
		case len(beyond) == 0:
			return
		default:
			t.Logf("two more fleets, for this one is beyond its limits: %v", beyond)
		}
	}
}

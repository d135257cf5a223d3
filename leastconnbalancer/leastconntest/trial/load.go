package trial

import "slices"

// Load is how many sessions a host holds.
type Load struct {
	Host     string
	Sessions int
}

// At is the loads of hosts that are named like their slots, in that order.
func At(slots string, sessions ...int) []Load {
	loads := make([]Load, len(slots))
	for i, slot := range []byte(slots) {
		loads[i].Host = string(slot)
		if i < len(sessions) {
			loads[i].Sessions = sessions[i]
		}
	}
	return loads
}

// Counts is the sessions of each of loads.
func Counts(loads []Load) []int {
	counts := make([]int, len(loads))
	for i, l := range loads {
		counts[i] = l.Sessions
	}
	return counts
}

// Spread is the difference between the fullest and the emptiest of loads, 0 if there are none.
func Spread(loads []Load) int {
	if len(loads) == 0 {
		return 0
	}
	counts := Counts(loads)
	return slices.Max(counts) - slices.Min(counts)
}

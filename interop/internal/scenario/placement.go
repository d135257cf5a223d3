package scenario

import (
	"fmt"
	"maps"
	"slices"
)

// Placement is where one session went, and what the policy could have known.
type Placement struct {
	Number int    // of the session within its run, from 1
	Host   string // that got it
	Loads  []Load // of the hosts in the list that could be used when it was opened
}

// Misplacement says what is wrong with the placement: nothing if no host in the list held fewer sessions than the one
// that got this.
func (p Placement) Misplacement() string {
	at := indexOf(p.Loads, p.Host)
	if at < 0 {
		return fmt.Sprintf("session %d went to %s, which is not in the list", p.Number, p.Host)
	}
	got := p.Loads[at]
	least := slices.MinFunc(p.Loads, byFewest)
	if got.Sessions == least.Sessions {
		return ""
	}
	return fmt.Sprintf("session %d went to %s, which held %d while %s held %d",
		p.Number, got.Host, got.Sessions, least.Host, least.Sessions)
}

// bestOrder lines up sessions that were opened at one moment over hosts with loads. Nobody can say which of them came
// first, so they stand in the order that speaks best for the policy: the next one is always that of the emptiest host
// that got one. If any order has no misplacement, this one has none.
func bestOrder(first int, loads []Load, got map[string]int) []Placement {
	loads, got = slices.Clone(loads), maps.Clone(got)
	var placements []Placement
	place := func(host string) {
		placements = append(placements, Placement{Number: first + len(placements), Host: host, Loads: slices.Clone(loads)})
		got[host]--
	}
	for {
		next := -1
		for i, l := range loads {
			if got[l.Host] > 0 && (next < 0 || l.Sessions < loads[next].Sessions) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		place(loads[next].Host)
		loads[next].Sessions++
	}
	for _, host := range slices.Sorted(maps.Keys(got)) { // what is left is where it should not be
		for got[host] > 0 {
			place(host)
		}
	}
	return placements
}

func byFewest(a, b Load) int { return a.Sessions - b.Sessions }

func indexOf(loads []Load, host string) int {
	return slices.IndexFunc(loads, func(l Load) bool { return l.Host == host })
}

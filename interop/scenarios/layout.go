package main

import "github.com/leastconn/grpc-leastconn/leastconnbalancer"

// layout is what of a frame there is room for.
type layout struct {
	width  int  // of lines
	bar    int  // characters of a bar; 0: what is left of the width
	rows   int  // endpoints of all services
	head   bool // the time, and empty lines around what a service has
	legend bool // of the bars
	events int  // the last ones
}

// printed is the layout of what is no terminal. It is that of one of 24 lines and 80 columns whose lines
// may be longer.
var printed = layout{width: 1 << 20, bar: 12, rows: 10, head: true, legend: true, events: recentEvents}

// enoughRows are endpoints that events make room for; fewRows are those that everything else does.
const (
	enoughRows = 10
	fewRows    = 4
)

// layoutOf returns the layout for a terminal. In a low one events go first, then the legend, then what stands above
// the services. Rows of endpoints are left out last, and one always stays.
func layoutOf(width, height int, services []leastconnbalancer.Snapshot) layout {
	l := layout{width: width, head: true, legend: true}
	endpoints := 0
	for _, s := range services {
		endpoints += len(s.Endpoints)
	}
	// lines are those of all but events and endpoints. The last is for how many more there are.
	lines := func(rows int) int {
		n := 2 * len(services) // figures and titles
		if l.head {
			n += 1 + 2*len(services)
		} else {
			n += max(0, len(services)-1)
		}
		if l.legend {
			n += 2
		}
		if rows < endpoints {
			n += len(services)
		}
		return n
	}
	rows := min(endpoints, enoughRows)
	l.events = max(0, min(recentEvents, height-lines(rows)-rows-1))
	few := min(endpoints, fewRows)
	for _, part := range []*bool{&l.legend, &l.head} {
		if lines(few)+few > height {
			*part = false
		}
	}
	room := height - lines(endpoints)
	if l.events > 0 {
		room -= l.events + 1
	}
	if l.rows = endpoints; endpoints > room {
		l.rows = max(1, room-len(services))
	}
	return l
}

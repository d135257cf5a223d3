package debugpage

import (
	"cmp"
	"html/template"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

var page = template.Must(template.ParseFS(files, "page.html"))

// process says whose counts these are.
type process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
}

var thisProcess = process{filepath.Base(os.Args[0]), os.Getpid()}

// ready set is what the page and the text show.
type view struct {
	Process  process
	Key      string
	Text     string
	Top      int
	Services []service
}

// service is one resource key.
type service struct {
	Key      string // "" for a private one
	InFlight int64
	Waiting  int64
	Spread   string // most minus fewest
	States   []stateCount
	Rows     []row
	Found    int // endpoints that fit the filter
	More     int // of these, not shown
	EndpointSets  []state.EndpointSetSnapshot
}

type stateCount struct {
	State string
	Count int
}

// row is one endpoint.
type row struct {
	Name     string
	Others   string // its other addresses
	State    state.EndpointState
	InFlight int64
	Penalty  int64
	Weight   string
	Cap      string
	Full     bool
	Ramping  string // the share of its weight, while it starts slowly
	Priority string
	Oldest   string
	Picks    uint64
	Level    float64 // in flight over weight
	Bar      int     // of 1000, what is in flight over weight
	Fine     int     // of 1000, the penalty over weight, after it
	Fair     int     // of 1000, where it would be if all were level
}

// services returns those that the query asks for. A ledger that nobody has any
// more is left out: it only waits to be collected.
func (q query) services(all []state.Snapshot) []state.Snapshot {
	return slices.DeleteFunc(all, func(s state.Snapshot) bool {
		return len(s.Endpoints)+len(s.EndpointSets) == 0 || !strings.Contains(s.ResourceKey, q.key)
	})
}

// filter drops the endpoints that the query does not ask for.
func (q query) filter(all []state.Snapshot) []state.Snapshot {
	services := []state.Snapshot{} // in JSON, none is []
	for _, s := range all {
		s.Endpoints = slices.DeleteFunc(s.Endpoints, func(n state.EndpointSnapshot) bool { return !q.fits(n) })
		services = append(services, s)
	}
	return services
}

func (q query) fits(n state.EndpointSnapshot) bool {
	return q.text == "" || strings.Contains(n.ID, q.text) ||
		slices.ContainsFunc(n.Addresses, func(a string) bool { return strings.Contains(a, q.text) })
}

func (q query) view(all []state.Snapshot) view {
	v := view{Process: thisProcess, Key: q.key, Text: q.text, Top: q.top}
	for _, s := range all {
		v.Services = append(v.Services, q.service(s))
	}
	return v
}

func (q query) service(s state.Snapshot) service {
	v := service{
		Key: s.ResourceKey, InFlight: s.InFlight, Waiting: s.Waiting, EndpointSets: s.EndpointSets,
		Spread: strconv.FormatFloat(math.Round(s.Imbalance*10)/10, 'f', -1, 64),
	}
	counts := map[state.EndpointState]int{}
	scale := scaleOf(s.Endpoints)
	for _, n := range s.Endpoints {
		counts[n.State]++
		if q.fits(n) {
			v.Rows = append(v.Rows, scale.row(n))
		}
	}
	for _, is := range state.EndpointStates {
		if counts[is] > 0 {
			v.States = append(v.States, stateCount{strings.ReplaceAll(string(is), "_", " "), counts[is]})
		}
	}
	v.Found = len(v.Rows)
	if v.Found > q.top {
		slices.SortStableFunc(v.Rows, func(a, b row) int {
			return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(b.InFlight, a.InFlight))
		})
		v.More = v.Found - q.top
		v.Rows = v.Rows[:q.top]
	}
	return v
}

// scale makes bars of one service comparable.
type scale struct {
	mean float64 // weight of those that may be chosen; 1 without one
	fair float64 // what they would have in flight over weight, were they level
	most float64 // highest load over weight of all
}

func scaleOf(nodes []state.EndpointSnapshot) scale {
	s := scale{mean: 1}
	var inFlight, weights, takers float64
	for _, n := range nodes {
		if m, ok := n.Eligible(); ok {
			inFlight += float64(n.InFlight)
			weights += float64(m.Weight)
			takers++
		}
	}
	if takers > 0 {
		s.mean, s.fair = weights/takers, inFlight/weights
	}
	for _, n := range nodes {
		s.most = max(s.most, s.over(n, n.InFlight+n.Penalty))
	}
	return s
}

// over returns a load over n's weight. One that may not be chosen is drawn as if
// it had the mean weight.
func (s scale) over(n state.EndpointSnapshot, load int64) float64 {
	if m, ok := n.Eligible(); ok {
		return float64(load) / float64(m.Weight)
	}
	return float64(load) / s.mean
}

func (s scale) row(n state.EndpointSnapshot) row {
	r := row{
		Name: n.Address(), State: n.State, InFlight: n.InFlight, Penalty: n.Penalty, Picks: n.Picks,
		Level: s.over(n, n.InFlight),
	}
	if others := n.Addresses; n.ID != "" {
		r.Name, r.Others = n.ID, strings.Join(others, ", ")
	} else if len(others) > 1 {
		r.Others = strings.Join(others[1:], ", ")
	}
	if m, ok := n.Eligible(); ok {
		r.Weight, r.Priority, r.Full = decimal(m.Weight), decimal(m.Priority), m.Full
		if m.SlowStartFactor < 1 {
			r.Ramping = strconv.Itoa(int(m.SlowStartFactor*100)) + " %"
		}
		if m.MaxInFlight > 0 {
			r.Cap = strconv.FormatInt(m.MaxInFlight, 10)
		}
		r.Fair = s.part(s.fair)
	}
	if n.InFlight > 0 {
		r.Oldest = (time.Duration(n.OldestSeconds) * time.Second).String()
	}
	r.Bar, r.Fine = s.part(r.Level), s.part(s.over(n, n.Penalty))
	return r
}

// decimal writes n in full, where int has 32 bits, too.
func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// part returns a level in thousandths of the highest.
func (s scale) part(level float64) int {
	if s.most == 0 {
		return 0
	}
	return int(min(1, level/s.most) * 1000)
}

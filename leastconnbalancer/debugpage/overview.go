package debugpage

import (
	"cmp"
	"html/template"
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

// overview is what the page and the text show.
type overview struct {
	Process  process
	Key      string
	Text     string
	Top      int
	Services []service
	Hints    []string // where to look when no channel is in use
}

// hints tell why a channel that was meant to use the policy is not shown.
var hints = []string{
	"No channel of this process uses least_conn at this moment. One that is idle comes back with its next RPC. One that uses pick_first " +
		"by mistake never comes: gRPC takes pick_first, without an error, when the service config names no policy, or names in " +
		"loadBalancingPolicy one that it does not know: another spelling (names are case-sensitive), or no import of leastconnbalancer.",
	"Where to look: loadBalancingConfig, in place of loadBalancingPolicy, makes a wrong name an error; a service config from the resolver " +
		"(a TXT record, xDS) replaces the default one; with GRPC_GO_LOG_SEVERITY_LEVEL=info gRPC logs which policy a channel switches to.",
}

// service is one resource key.
type service struct {
	Key          string // "" for a private one
	InFlight     int64
	ExtraUnits   int64 // what those cost beyond one each
	Waiting      int64
	Granted      int64  // of those in flight
	Reserved     int64  // likewise
	Moving       int64  // streams
	Spread       string // most minus fewest
	Fleet        *fleet // nil where reports are not used
	States       []stateCount
	Rows         []row
	Found        int // endpoints that fit the filter
	More         int // of these, not shown
	EndpointSets []state.EndpointSetSnapshot
}

type stateCount struct {
	State string
	Count int
}

// row is one endpoint.
type row struct {
	Name       string
	Addresses  string // those that the name does not tell
	State      state.EndpointState
	InFlight   int64
	Units      int64 // that those cost
	Report     report
	Granted    int64 // of those in flight
	Reserved   int64 // likewise
	Leaving    int64 // likewise
	Arriving   int64 // likewise
	Penalty    int64
	Weight     string
	Cap        string
	Full       string // why, when it has no room
	SlowStart  string // the part of its weight that it has, while it starts slowly
	Priority   string
	Oldest     string
	Picks      uint64
	Level      float64 // in flight over weight, with what others have
	LoadBar    int     // of 1000, what is in flight over weight
	OthersBar  int     // of 1000, what others have, after it
	PenaltyX   int     // of 1000, where the penalty begins, after these
	PenaltyBar int     // of 1000, the penalty over weight
	FairMark   int     // of 1000, where it would be if all were level
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
		s.Endpoints = slices.DeleteFunc(s.Endpoints, func(ep state.EndpointSnapshot) bool { return !q.fits(ep) })
		services = append(services, s)
	}
	return services
}

func (q query) fits(ep state.EndpointSnapshot) bool {
	return q.text == "" || strings.Contains(ep.ID, q.text) ||
		slices.ContainsFunc(ep.Addresses, func(a string) bool { return strings.Contains(a, q.text) })
}

func (q query) overview(all []state.Snapshot) overview {
	v := overview{Process: thisProcess, Key: q.key, Text: q.text, Top: q.top}
	channels := 0
	for _, s := range all {
		v.Services = append(v.Services, q.service(s))
		channels += len(s.EndpointSets)
	}
	if channels == 0 && q.key == "" {
		v.Hints = hints
	}
	return v
}

func (q query) service(s state.Snapshot) service {
	v := service{
		Key: s.ResourceKey, InFlight: s.InFlight, Waiting: s.Waiting, Granted: s.Granted, Reserved: s.Reserved, Moving: s.Moving, EndpointSets: s.EndpointSets,
		Spread: tenths(s.Imbalance), Fleet: fleetOf(s.Fleet),
	}
	counts := map[state.EndpointState]int{}
	scale := scaleOf(s.Endpoints)
	for _, ep := range s.Endpoints {
		counts[ep.State]++
		v.ExtraUnits += ep.Units - ep.InFlight
		if q.fits(ep) {
			v.Rows = append(v.Rows, scale.row(ep))
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
	fair float64 // what they would have in flight over weight, were they level; of those that report, where some do
	most float64 // highest load over weight of all
}

// sums are over endpoints that may be chosen.
type sums struct{ load, weights, endpoints float64 }

func (s *sums) add(load int64, weight uint32) {
	s.load += float64(load)
	s.weights += float64(weight)
	s.endpoints++
}

func scaleOf(endpoints []state.EndpointSnapshot) scale {
	s := scale{mean: 1}
	var all, told sums
	for _, ep := range endpoints {
		if m, ok := ep.Eligible(); ok {
			all.add(ep.InFlight, m.Weight)
			if r := ep.Report(); r.Told {
				told.add(ep.InFlight+r.Others, m.Weight)
			}
		}
	}
	if all.endpoints > 0 {
		s.mean, s.fair = all.weights/all.endpoints, all.load/all.weights
	}
	if told.endpoints > 0 {
		s.fair = told.load / told.weights
	}
	for _, ep := range endpoints {
		s.most = max(s.most, s.perWeight(ep, ep.InFlight+ep.Report().Others+ep.Penalty))
	}
	return s
}

// perWeight returns a load over the endpoint's weight. One that may not be chosen is drawn as if
// it had the mean weight.
func (s scale) perWeight(ep state.EndpointSnapshot, load int64) float64 {
	if m, ok := ep.Eligible(); ok {
		return float64(load) / float64(m.Weight)
	}
	return float64(load) / s.mean
}

func (s scale) row(ep state.EndpointSnapshot) row {
	said := ep.Report()
	r := row{
		Name: ep.Address(), State: ep.State, InFlight: ep.InFlight, Units: ep.Units, Granted: ep.Granted, Reserved: ep.Reserved, Leaving: ep.Leaving, Arriving: ep.Arriving, Penalty: ep.Penalty,
		Picks: ep.Picks, Report: reportOf(said), Level: s.perWeight(ep, ep.InFlight+said.Others),
	}
	if others := ep.Addresses; ep.ID != "" {
		r.Name, r.Addresses = ep.ID, strings.Join(others, ", ")
	} else if len(others) > 1 {
		r.Addresses = strings.Join(others[1:], ", ")
	}
	if m, ok := ep.Eligible(); ok {
		r.Weight, r.Priority, r.Full = decimal(m.Weight), decimal(m.Priority), fullness(ep)
		if m.SlowStartFactor < 1 {
			r.SlowStart = strconv.Itoa(int(m.SlowStartFactor*100)) + " %"
		}
		if m.MaxInFlight > 0 {
			r.Cap = strconv.FormatInt(m.MaxInFlight, 10)
		}
		r.FairMark = s.thousandths(s.fair)
	}
	if ep.InFlight > 0 {
		r.Oldest = (time.Duration(ep.OldestSeconds) * time.Second).String()
	}
	r.LoadBar, r.PenaltyX = s.thousandths(s.perWeight(ep, ep.InFlight)), s.thousandths(r.Level)
	r.OthersBar, r.PenaltyBar = r.PenaltyX-r.LoadBar, s.thousandths(s.perWeight(ep, ep.Penalty))
	return r
}

// decimal writes n in full, where int has 32 bits, too.
func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// thousandths returns a level in thousandths of the highest.
func (s scale) thousandths(level float64) int {
	if s.most == 0 {
		return 0
	}
	return int(min(1, level/s.most) * 1000)
}

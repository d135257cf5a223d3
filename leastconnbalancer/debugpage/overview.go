package debugpage

import (
	"bytes"
	"encoding/json"
	"html/template"
	"os"
	"path/filepath"
	"strings"

	"github.com/leastconn/grpc-leastconn/state"
)

var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"words":    func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	"indented": indented,
	"channel":  channelOf,
}).ParseFS(files, "page.html"))

// indented is a configuration for people.
func indented(js json.RawMessage) string {
	var buf bytes.Buffer
	if json.Indent(&buf, js, "", "  ") != nil {
		return string(js)
	}
	return buf.String()
}

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
	State    string
	States   []string // what State may be
	Sort     string
	Columns  []column // what Sort may be
	Top      int
	Services []service
	Counters []string // of channels
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

// counters are the columns of the channels.
var counters = []string{"picks", "waiting", "had to wait", "retried elsewhere", "penalties", "double releases"}

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
	Columns      []header
	Rows         []row
	Found        int    // endpoints that fit the filter
	More         int    // of these, not shown
	By           string // the column that they are ordered by
	Descending   bool
	Whole        bool   // the rows are all endpoints there are
	Newest       uint64 // number of the newest endpoint
	EndpointSets []state.EndpointSetSnapshot
}

type stateCount struct {
	State string
	Count int
}

func (q query) overview(all []state.Snapshot) overview {
	v := overview{Process: thisProcess, Key: q.key, Text: q.text, State: q.state, States: states, Sort: q.sort.String(), Columns: columns, Top: q.top, Counters: counters}
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
		v.Newest = max(v.Newest, ep.Number)
		if q.fits(ep) {
			v.Rows = append(v.Rows, scale.row(ep))
		}
	}
	for _, is := range state.EndpointStates {
		if counts[is] > 0 {
			v.States = append(v.States, stateCount{strings.ReplaceAll(string(is), "_", " "), counts[is]})
		}
	}
	q.cut(&v)
	return v
}

// cut puts the rows in order and keeps the first of them.
func (q query) cut(v *service) {
	by := q.sort
	v.Found, v.More = len(v.Rows), max(0, len(v.Rows)-q.top)
	if by == (order{}) && v.More > 0 {
		by = mostLoaded
	}
	by.sort(v.Rows)
	v.Rows = v.Rows[:v.Found-v.More]
	v.By, v.Columns = strings.ReplaceAll(by.column().Key, "_", " "), by.headers(*v)
	v.Descending = by.descending
	v.Whole = v.More == 0 && !q.filtered()
	for i := range v.Rows {
		v.Rows[i].setCells(v.Columns)
	}
}

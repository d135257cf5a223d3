package debugpage

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// row is one endpoint.
type row struct {
	Name      string
	Addresses string // those that the name does not tell
	State     state.EndpointState
	Drained   bool     // by Drain, whatever its weights
	Why       []string // it is not simply ready
	InFlight  int64
	Units     int64 // that those cost
	Highest   int64
	Report    report
	Granted   int64 // of those in flight
	Reserved  int64 // likewise
	Leaving   int64 // likewise
	Arriving  int64 // likewise
	Penalty   int64
	Weight    string
	Cap       capacity
	Full      string // why, when it has no room
	Score     string
	SlowStart string // the part of its weight that it has, while it starts slowly
	Priority  string
	Oldest    string
	Since     string // it is in its state
	Connected string // since its connection is up
	Picks     uint64
	Failures  uint64
	Level     float64 // units in flight over weight, with what others have
	Bar       bar
	History   string        // what the page's script follows: see history.js
	Cells     template.HTML // its figures

	endpoint  state.EndpointSnapshot
	member    state.MemberSnapshot // by which it may be chosen; zero without one
	connected float64              // s; 0 without a connection
}

func (s scale) row(ep state.EndpointSnapshot) row {
	said := ep.Report()
	r := row{
		Name: ep.Address(), State: ep.State, Drained: ep.Drained, Why: why(ep), InFlight: ep.InFlight, Units: ep.Units, Highest: ep.Highest, Granted: ep.Granted, Reserved: ep.Reserved,
		Leaving: ep.Leaving, Arriving: ep.Arriving, Penalty: ep.Penalty, Picks: ep.Picks, Failures: ep.Failures, Report: reportOf(said),
		Level: s.perWeight(ep, s.load(ep)), Cap: capOf(ep), Since: roughly(ep.StateSeconds), History: history(ep), endpoint: ep,
	}
	if others := ep.Addresses; ep.ID != "" {
		r.Name, r.Addresses = ep.ID, strings.Join(others, ", ")
	} else if len(others) > 1 {
		r.Addresses = strings.Join(others[1:], ", ")
	}
	m, ok := ep.Eligible()
	if ok {
		r.member = m
		r.Weight, r.Priority, r.Full = decimal(m.Weight), decimal(m.Priority), fullness(ep)
		if m.SlowStartFactor < 1 {
			r.SlowStart = strconv.Itoa(int(m.SlowStartFactor*100)) + " %"
		}
		if m.Score > 0 {
			r.Score = scoreText(m.Score)
		}
	}
	r.connected = m.Connection.AgeSeconds
	if !ok {
		for _, m := range ep.Members {
			r.connected = max(r.connected, m.Connection.AgeSeconds)
		}
	}
	if r.connected > 0 {
		r.Connected = roughly(r.connected)
	}
	if ep.InFlight > 0 {
		r.Oldest = roughly(ep.OldestSeconds)
	}
	r.Bar = s.bar(ep, r.Cap)
	return r
}

// setCells gives the row its figures in the columns. The template would take most of its
// time for them.
func (r *row) setCells(columns []header) {
	var b strings.Builder
	for _, c := range columns {
		if c.text == nil {
			continue
		}
		text := c.text(*r)
		if text == "" {
			text = "–"
		}
		b.WriteString(`<td class="n c-` + c.Key + `">` + template.HTMLEscapeString(text) + `</td>`)
	}
	r.Cells = template.HTML(b.String())
}

// history is the endpoint's number and what changes when something happens to it: what
// it has in flight, the channels that list it, their connections so far, what of its
// RPCs is on connections before them, and the streams that have moved here and away.
func history(ep state.EndpointSnapshot) string {
	connections, earlier := uint64(0), ep.InFlight-ep.Reserved
	for _, m := range ep.Members {
		connections += m.Connection.Number
		earlier -= m.Connection.InFlight
	}
	if len(ep.Members) == 0 || connections == 0 {
		earlier = 0
	}
	return fmt.Sprint(ep.Number, ep.InFlight, len(ep.Members), connections, max(0, earlier), ep.MovedHere, ep.MovedAway)
}

// decimal writes n in full, where int has 32 bits, too.
func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// scoreText writes a score: where it is of thousands of units, nobody reads hundredths.
func scoreText(score float64) string {
	if score >= 1000 {
		return strconv.FormatFloat(score, 'f', 0, 64)
	}
	return strconv.FormatFloat(score, 'f', 2, 64)
}

// ago writes a time in whole seconds.
func ago(s float64) string { return (time.Duration(s) * time.Second).String() }

// roughly writes a time by its largest unit, so that it seldom changes.
func roughly(s float64) string {
	switch d := time.Duration(s) * time.Second; {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

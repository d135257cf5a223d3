package debugpage

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/leastconn/grpc-leastconn/state"
)

// defaultTop is how many endpoints of a service the page and the text show.
const (
	defaultTop = 100
	maxTop     = 100_000
)

// query is what is to be shown.
type query struct {
	format, key, text string
	state             string // "": any
	sort              order
	top               int
}

// states are what endpoints can be asked for by.
var states = []string{string(state.EndpointReady), full, string(state.EndpointDraining), string(state.EndpointNotReady), string(state.EndpointDeparted)}

func parseQuery(values url.Values, accept string) (query, error) {
	q := query{format: values.Get("format"), key: values.Get("key"), text: values.Get("q"), state: values.Get("state"), top: defaultTop}
	if q.format == "" {
		q.format = accepted(accept)
	}
	if _, ok := contentTypes[q.format]; !ok {
		return q, fmt.Errorf("format %q: want html, text or json", q.format)
	}
	if q.state != "" && !slices.Contains(states, q.state) {
		return q, fmt.Errorf("state %q: want one of %s", q.state, strings.Join(states, ", "))
	}
	if top := values.Get("top"); top != "" {
		n, err := strconv.Atoi(top)
		if err != nil || n < 1 || n > maxTop {
			return q, fmt.Errorf("top %q: want a whole number from 1 to %d", top, maxTop)
		}
		q.top = n
	}
	var err error
	if sorts := values["sort"]; len(sorts) > 0 {
		q.sort, err = parseOrder(sorts[len(sorts)-1]) // a column's button comes after the form's own
	}
	return q, err
}

// accepted returns the format for an Accept header.
func accepted(accept string) string {
	switch {
	case strings.Contains(accept, "text/html"):
		return "html"
	case strings.Contains(accept, "application/json"):
		return "json"
	}
	return "text"
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
	switch q.state {
	case "", string(ep.State):
	case full:
		if fullness(ep) == "" {
			return false
		}
	default:
		return false
	}
	return q.text == "" || strings.Contains(ep.ID, q.text) ||
		slices.ContainsFunc(ep.Addresses, func(a string) bool { return strings.Contains(a, q.text) })
}

// filtered reports whether endpoints may be missing.
func (q query) filtered() bool { return q.text+q.state != "" }

package debugpage

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// column is a figure of each endpoint, and an order of them.
type column struct {
	Key, Label, Title string
	of                func(service) bool // which services have it; nil: all
	text              func(row) string   // "" is none; nil for what is drawn
	value             func(row) float64  // none is NaN
}

// none is a figure that an endpoint does not have. In any order it comes last.
var none = math.NaN()

func orNone(has bool, value float64) float64 {
	if has {
		return value
	}
	return none
}

// columns are all, but for the history, in the order in which the page has them.
var columns = []column{
	{Key: "name", Label: "endpoint", value: func(row) float64 { return 0 }},
	{Key: "load", Label: "load", Title: "in flight over weight, in units where RPCs have costs", value: func(r row) float64 { return r.Level }},
	{Key: "in_flight", Label: "in flight", text: func(r row) string { return decimals(r.InFlight) }, value: func(r row) float64 { return float64(r.InFlight) }},
	{
		Key: "units", Label: "units", Title: "what the RPCs in flight cost", of: func(s service) bool { return s.ExtraUnits > 0 },
		text: func(r row) string { return decimals(r.Units) }, value: func(r row) float64 { return float64(r.Units) },
	},
	{
		Key: "others", Label: "others", Title: "in flight in other processes, at the server's last report", of: reporting,
		text:  func(r row) string { return r.Report.Others },
		value: func(r row) float64 { return orNone(r.Report.Others != "", float64(r.endpoint.Report().Others)) },
	},
	{
		Key: "report", Label: "report", Title: "age of the server's last report", of: reporting,
		text:  func(r row) string { return r.Report.Age },
		value: func(r row) float64 { return orNone(r.Report.Age != "", r.endpoint.Report().AgeSeconds) },
	},
	{
		Key: "highest", Label: "highest", Title: "highest in flight since the endpoint is known",
		text: func(r row) string { return decimals(r.Highest) }, value: func(r row) float64 { return float64(r.Highest) },
	},
	{
		Key: "cap", Label: "cap", Title: "room for RPCs: the lower of maxInFlight and the server's limit of streams",
		text: func(r row) string { return r.Cap.String() }, value: func(r row) float64 { return orNone(r.Cap.String() != "", float64(r.Cap.Limit)) },
	},
	{
		Key: "score", Label: "score", Title: "the lowest is chosen next", text: func(r row) string { return r.Score },
		value: func(r row) float64 { return orNone(r.Score != "", r.member.Score) },
	},
	{Key: "weight", Label: "weight", text: func(r row) string { return r.Weight }, value: func(r row) float64 { return orNone(r.Weight != "", float64(r.member.Weight)) }},
	{
		Key: "priority", Label: "priority", Title: "0 is the highest",
		text: func(r row) string { return r.Priority }, value: func(r row) float64 { return orNone(r.Priority != "", float64(r.member.Priority)) },
	},
	{
		Key: "failures", Label: "failures", Title: "attempts that failed, of the picks",
		text: func(r row) string { return strconv.FormatUint(r.Failures, 10) }, value: func(r row) float64 { return float64(r.Failures) },
	},
	{
		Key: "oldest", Label: "oldest", Title: "age of the oldest RPC in flight",
		text: func(r row) string { return r.Oldest }, value: func(r row) float64 { return orNone(r.Oldest != "", r.endpoint.OldestSeconds) },
	},
	{Key: "since", Label: "in state", Title: "how long it is in its state", text: func(r row) string { return r.Since }, value: func(r row) float64 { return r.endpoint.StateSeconds }},
	{
		Key: "connected", Label: "connected", Title: "age of the connection",
		text: func(r row) string { return r.Connected }, value: func(r row) float64 { return orNone(r.Connected != "", r.connected) },
	},
	{Key: "picks", Label: "picks", text: func(r row) string { return strconv.FormatUint(r.Picks, 10) }, value: func(r row) float64 { return float64(r.Picks) }},
}

func reporting(s service) bool { return s.Fleet != nil }

func decimals(n int64) string { return strconv.FormatInt(n, 10) }

// Figure reports whether the column is one of numbers.
func (c column) Figure() bool { return c.text != nil }

// order is by a column. The zero order is by name.
type order struct {
	key        string
	descending bool
}

var mostLoaded = order{"load", true}

func parseOrder(text string) (order, error) {
	key, descending := strings.CutPrefix(text, "-")
	var keys []string
	for _, c := range columns {
		if keys = append(keys, c.Key); c.Key == key {
			return order{key, descending}, nil
		}
	}
	if text == "" {
		return order{}, nil
	}
	return order{}, fmt.Errorf("sort %q: want one of %s, or one with - before it", text, strings.Join(keys, ", "))
}

func (o order) String() string {
	if o.descending {
		return "-" + o.key
	}
	return o.key
}

func (o order) column() column {
	i := max(0, slices.IndexFunc(columns, func(c column) bool { return c.Key == o.key }))
	return columns[i]
}

// sort puts the rows in order; equal ones, by name.
func (o order) sort(rows []row) {
	value := o.column().value
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.Name, b.Name) })
	if o.column().Key == columns[0].Key {
		if o.descending {
			slices.Reverse(rows)
		}
		return
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		x, y := value(a), value(b)
		if math.IsNaN(x) || math.IsNaN(y) {
			return cmp.Compare(y, x) // a NaN is less than any number
		}
		if o.descending {
			x, y = y, x
		}
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(b.InFlight, a.InFlight))
	})
}

// header is a column's head: what its button asks for, and how it is sorted.
type header struct {
	column
	Sort, Sorted string // Sorted: as aria-sort has it, "" for none
}

// headers are those of a service's table that is in this order.
func (o order) headers(s service) (all []header) {
	for _, c := range columns {
		if c.of != nil && !c.of(s) {
			continue
		}
		h := header{column: c, Sort: order{c.Key, c.text != nil || c.Key == mostLoaded.key}.String()}
		if c.Key == o.column().Key {
			h.Sorted = "ascending"
			if o.descending {
				h.Sorted = "descending"
			}
			h.Sort = order{c.Key, !o.descending}.String()
		}
		all = append(all, h)
	}
	return all
}

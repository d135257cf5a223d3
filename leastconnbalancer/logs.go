package leastconnbalancer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/grpc/grpclog"

	"github.com/leastconn/grpc-leastconn/state"
)

// logger writes as component least_conn: what changes at verbosity 2, a warning
// once for each cause, nothing for an RPC.
var logger = grpclog.Component(Name)

// detail is the verbosity of what changes.
const detail = 2

// logConfig says which configuration is in use from now on.
func (b *leastConn) logConfig(key string, cfg *Config) {
	if !logger.V(detail) {
		return
	}
	if cfg == nil {
		cfg = &Config{}
	}
	js, _ := json.Marshal(cfg)
	if line := fmt.Sprintf("resource key %q, configuration %s", key, js); line != b.logged {
		b.logged = line
		logger.Infof("[%s] %s", b.target, line)
	}
}

// logList says how the list has changed.
func (b *leastConn) logList(joined, left []*child, changed int) {
	if len(joined)+len(left)+changed > 0 && logger.V(detail) {
		logger.Infof("[%s] %d endpoints: %d joined%s, %d left%s, %d changed", b.target, len(b.children.listed),
			len(joined), named(joined), len(left), named(left), changed)
	}
}

// logDrained says that RPCs are kept from an endpoint, or not any more.
func (b *leastConn) logDrained(c *child) {
	if !logger.V(detail) {
		return
	}
	is := "is drained"
	if !c.drained {
		is = "is not drained any more"
	}
	logger.Infof("[%s] %s %s", b.target, shortName(c.endpoint.Addresses[0].Addr), is)
}

// What a line says of those that have joined or left.
const (
	maxNamed    = 5
	maxNameSize = 64 // bytes of an address
)

// shortName quotes an address, of which a resolver may have made anything.
func shortName(addr string) string {
	if len(addr) > maxNameSize {
		addr = addr[:maxNameSize] + "…"
	}
	return strconv.Quote(addr)
}

// named names the first few children by their first addresses, in parentheses.
func named(cs []*child) string {
	if len(cs) == 0 {
		return ""
	}
	names := make([]string, len(cs))
	for i, c := range cs {
		names[i] = c.endpoint.Addresses[0].Addr
	}
	slices.Sort(names)
	var text strings.Builder
	for i, name := range names[:min(maxNamed, len(names))] {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(shortName(name))
	}
	if more := len(names) - maxNamed; more > 0 {
		fmt.Fprintf(&text, " and %d more", more)
	}
	return " (" + text.String() + ")"
}

// logPlan returns what says that streams are about to move.
func logPlan(target string) func(state.Plan) {
	return func(p state.Plan) {
		switch {
		case !logger.V(detail):
		case p.Address == "":
			logger.Infof("[%s] about %d streams are to move so that loads become level", target, p.RPCs)
		default:
			logger.Infof("[%s] %d streams are to leave %s (%v)", target, p.RPCs, p.Address, p.Reason)
		}
	}
}

// maxWarned bounds what is remembered of warnings, and so how many there are
// while RPCs fail: some resolvers never say the same twice.
const maxWarned = 4096

// warnOnceLocked says why RPCs fail, once for each cause until they can be sent
// again. Texts that differ in numbers alone, such as ports, have one cause.
func (b *leastConn) warnOnceLocked(cause error) {
	text := cause.Error()
	kind := "\n" + strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text) + "\n"
	if o := &b.outage; len(o.warned) < maxWarned && !strings.Contains(o.warned, kind) {
		o.warned += kind
		logger.Warningf("[%s] RPCs fail: %s", b.target, text)
	}
}

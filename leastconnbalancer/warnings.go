package leastconnbalancer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// known are the fields of a configuration, with those of its objects.
var known = []string{
	"resourceKey", "priorityFailover", "startupWait", "failurePenalty", "maxInFlight", "onFull", "maxQueued", "streamLimit",
	"slowStart", "slowStart.window", "slowStart.minWeightPercent", "slowStart.aggression",
	"rebalance", "rebalance.perSecond", "rebalance.minAge", "rebalance.drainWithin",
	"reports", "reports.interval",
}

// ignoredFields is how a Config that is rendered names the fields that it had and
// does not know: parents render and read it again before the policy sees it.
const ignoredFields = "ignoredFields"

// MarshalJSON implements json.Marshaler.
func (c Config) MarshalJSON() ([]byte, error) {
	type fields Config
	all := struct {
		fields
		Ignored []string `json:"ignoredFields,omitempty"`
	}{fields: fields(c)}
	all.Ignored = c.ignoredNames()
	return json.Marshal(all)
}

func (c Config) ignoredNames() (names []string) {
	if c.ignored != "" {
		_ = json.Unmarshal([]byte(c.ignored), &names) // which readIgnored wrote
	}
	return names
}

// readIgnored notes the fields that are not known. It fails for none.
func (f fields) readIgnored(c *Config) {
	var names []string
	_ = json.Unmarshal(f[ignoredFields], &names)
	within := func(prefix string, f fields) {
		for name := range f {
			if name = prefix + name; name != ignoredFields && !slices.Contains(known, name) {
				names = append(names, name)
			}
		}
	}
	within("", f)
	for _, object := range []string{"slowStart", "rebalance", "reports"} {
		var in fields
		_ = json.Unmarshal(f[object], &in)
		within(object+".", in)
	}
	if len(names) > 0 {
		slices.Sort(names)
		js, _ := json.Marshal(slices.Compact(names)) // strings can always be rendered
		c.ignored = string(js)
	}
}

// warnings says what of the configuration has no effect. capped is whether an
// endpoint has a cap.
func (c *Config) warnings(capped bool) []string {
	if c == nil {
		return nil
	}
	ws := c.keyWarnings()
	for _, name := range c.ignoredNames() {
		ws = append(ws, fmt.Sprintf("configuration: unknown field %.100q is ignored; the nearest known one is %q", name, nearest(name)))
	}
	const (
		noCap  = "configuration: %s has no effect: no endpoint has a cap (maxInFlight)"
		noFail = "configuration: onFull \"fail\" fails no RPC: no endpoint has a cap (maxInFlight), and for servers' limits none fails"
	)
	switch {
	case capped:
	case c.StreamLimit != StreamLimitIgnore: // an RPC may wait for a server's limit
		if c.OnFull == OnFullFail {
			ws = append(ws, noFail)
		}
	default:
		if c.OnFull != "" {
			ws = append(ws, fmt.Sprintf(noCap, "onFull"))
		}
		if c.MaxQueued != nil {
			ws = append(ws, fmt.Sprintf(noCap, "maxQueued"))
		}
	}
	return ws
}

// nearest returns the known field whose name is most like the given one's.
func nearest(name string) string {
	return slices.MaxFunc(known, func(a, b string) int { return likeness(name, a) - likeness(name, b) })
}

// likeness returns, in thousandths, how much of two fields' names is common to both.
// Cases do not matter, nor, but for a little, in which object a field is.
func likeness(a, b string) int {
	object := func(s string) string { return s[:strings.LastIndex(s, ".")+1] }
	inA, inB := object(a), object(b)
	a, b = strings.ToLower(a[len(inA):]), strings.ToLower(b[len(inB):])
	like := 0
	if len(a)+len(b) > 0 {
		like = 2000 * common(a, b) / (len(a) + len(b))
	}
	if inA == inB {
		like++
	}
	return like
}

// common returns the length of the longest common subsequence.
func common(a, b string) int {
	lengths := make([]int, len(b)+1)
	for i := range a {
		diagonal := 0
		for j := range b {
			above := lengths[j+1]
			if a[i] == b[j] {
				lengths[j+1] = diagonal + 1
			} else {
				lengths[j+1] = max(above, lengths[j])
			}
			diagonal = above
		}
	}
	return lengths[len(b)]
}

// warn logs what of the configuration has no effect, and shows it, as long as it
// says so: each warning is logged once.
func (b *leastConn) warn(cfg *Config) {
	b.mu.Lock()
	set, capped := b.load.set, false
	for _, c := range b.children.listed {
		capped = capped || c.appliedLimit > 0
	}
	b.mu.Unlock()
	ws := cfg.warnings(capped)
	if b.keyWarning != "" {
		ws = append(ws, b.keyWarning)
	}
	set.SetWarnings(ws)
	for _, w := range ws {
		if !slices.Contains(b.warned, w) && len(b.warned) < maxWarned {
			b.warned = append(b.warned, w)
			logger.Warningf("[%s] %s", b.target, w)
		}
	}
}

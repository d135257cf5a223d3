// Package statetest tests load state: a naive model of what package state
// promises, operation scripts that run against both, and the checks that a test
// binary ends with.
package statetest

import (
	"fmt"
	"math"
	"slices"

	"github.com/leastconn/grpc-leastconn/state"
)

// Model is one resource key's load in the most obvious form: counts by address
// and, per view, the weights of its ready endpoints. Endpoints have one address
// each. It is not safe for concurrent use.
type Model struct {
	Loads map[string]int // in flight by address; none when 0
	Views map[int]map[string]Weight
}

// Weight is what an endpoint was given and what it is taken as: the weight of a
// near one that was in the view before.
type Weight struct {
	Given uint32
	Taken float64
}

// NewModel returns an empty model.
func NewModel() *Model {
	return &Model{Loads: map[string]int{}, Views: map[int]map[string]Weight{}}
}

// Set makes addr ready in a view.
func (m *Model) Set(view int, addr string, weight uint32) {
	v := m.Views[view]
	if v == nil {
		v = map[string]Weight{}
		m.Views[view] = v
	}
	if w, ok := v[addr]; ok && w.Given == weight {
		return
	}
	delete(v, addr)
	near := float64(weight)
	best := math.Inf(1)
	for _, w := range v {
		d := math.Abs(float64(weight) - w.Taken)
		if w.Taken > 0 && d <= w.Taken/(1<<16) && (d < best || d == best && w.Taken < near) {
			near, best = w.Taken, d
		}
	}
	v[addr] = Weight{Given: weight, Taken: near}
}

// Remove makes addr not ready in a view.
func (m *Model) Remove(view int, addr string) { delete(m.Views[view], addr) }

// Best returns the addresses that a view may choose when those of except were
// tried, sorted.
func (m *Model) Best(view int, except ...string) []string {
	var best []string
	low := math.Inf(1)
	for addr, w := range m.Views[view] {
		if w.Given == 0 || slices.Contains(except, addr) {
			continue
		}
		score := float64(m.Loads[addr]+1) / w.Taken
		if score < low {
			low, best = score, nil
		}
		if score == low {
			best = append(best, addr)
		}
	}
	slices.Sort(best)
	return best
}

// Add counts n more RPCs in flight at addr.
func (m *Model) Add(addr string, n int) {
	m.Loads[addr] += n
	if m.Loads[addr] == 0 {
		delete(m.Loads, addr)
	}
}

// Compare returns how a ledger's snapshot differs from the model.
func (m *Model) Compare(s state.Snapshot) error {
	sum := 0
	for _, n := range m.Loads {
		sum += n
	}
	if int(s.InFlight) != sum {
		return fmt.Errorf("%d in flight, want %d", s.InFlight, sum)
	}
	seen := 0
	for _, n := range s.Nodes {
		addr := n.Addresses[0]
		if int(n.InFlight) != m.Loads[addr] {
			return fmt.Errorf("%s has %d in flight, want %d", addr, n.InFlight, m.Loads[addr])
		}
		if n.InFlight > 0 {
			seen++
		}
	}
	if seen != len(m.Loads) {
		return fmt.Errorf("%d loaded nodes, want %d", seen, len(m.Loads))
	}
	return nil
}

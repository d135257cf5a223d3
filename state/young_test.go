package state_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// Choices are those of the rule, whatever happens.
func TestChoicesByReportsAreThoseOfTheRule(t *testing.T) {
	for _, weights := range [][]uint32{{1}, {1, 2, 5}} {
		inTime(t, func(e *env) {
			n := newNaiveRule(e, 10*time.Second)
			all := names(14)
			e.list(all...)
			born := map[string]time.Time{}
			for i, addr := range all {
				e.set(addr, weights[i%len(weights)])
				born[addr] = time.Now()
			}
			n.open() // the first class is drawn
			e.end(slices.Collect(maps.Keys(e.leases))[0], 1)
			for _, addr := range all {
				n.report(addr, 5, 0.5)
			}
			byReport, steps := 0, 6000
			most, rate, wait := 12, 1.0, 50
			for step := range steps {
				if step%100 == 0 {
					most, rate, wait = []int{1, 2, 12}[rand.IntN(3)], []float64{0.001, 1, 20}[rand.IntN(3)], []int{2, 50, 900}[rand.IntN(3)]
				}
				addr := all[rand.IntN(len(all))]
				switch rand.IntN(12) {
				case 0, 1, 2:
					if n.pick() {
						byReport++
					}
				case 3, 4:
					if n.own[addr] > 0 {
						e.end(addr, 1)
						n.own[addr]--
					}
				case 5:
					e.members[addr].SetMaxInFlight(uint32(rand.IntN(4)) * 2)
				case 6:
					e.readySet.Remove(e.members[addr])
					n.forget(addr)
					e.set(addr, weights[rand.IntN(len(weights))])
					born[addr] = time.Now()
				default:
					d := time.Duration(rand.IntN(wait)) * state.Tick
					for _, a := range all { // or else it would be silent
						last := born[a]
						if r, ok := n.before[a]; ok && r.at.After(last) {
							last = r.at
						}
						if time.Since(last)+d > 29*time.Second {
							n.report(a, n.own[a]+rand.IntN(most), rate*rand.Float64())
						}
					}
					pass(d)
					if rand.IntN(8) > 0 {
						n.report(addr, n.own[addr]+rand.IntN(most), rate*rand.Float64())
					}
				}
				require.NoError(t, e.ledger.Check())
			}
			require.Positive(t, byReport)
		})
	}
}

// pair is two sets of servers that differ in one thing: the second one's report. Members
// are named by their turns, since chance has put them in different places.
type pair struct {
	*testing.T
	plain, told *env
	names       map[string]string // of told's, by plain's
}

func newPair(t *testing.T, n int, interval time.Duration) *pair {
	p := &pair{T: t, plain: newEnv(t), told: newEnv(t), names: map[string]string{}}
	p.told.endpointSet.SetReports(interval)
	p.plain.add(names(n)...)
	p.told.add(names(n)...)
	for range n {
		p.names[p.plain.call()] = p.told.call()
	}
	return p
}

// step does the same to both, and requires the same choices.
func (p *pair) step() {
	addr := names(len(p.names))[rand.IntN(len(p.names))]
	other := p.names[addr]
	switch rand.IntN(8) {
	case 0:
		if k := len(p.plain.leases[addr]); k > 0 {
			p.plain.end(addr, 1)
			p.told.end(other, 1)
		}
	case 1:
		if k := len(p.plain.leases[addr]); k > 0 {
			p.plain.fail(addr, 1)
			p.told.fail(other, 1)
		}
	case 2:
		limit := uint32(rand.IntN(10))
		p.plain.members[addr].SetMaxInFlight(limit)
		p.told.members[other].SetMaxInFlight(limit)
	case 3:
		pass(time.Duration(rand.IntN(20)) * state.Tick)
	default:
		lease, value, ok := p.plain.readySet.Acquire()
		again, same, too := p.told.readySet.Acquire()
		require.Equal(p, ok, too)
		if ok {
			addr := value.(string)
			require.Equal(p, p.names[addr], same)
			p.plain.leases[addr] = append(p.plain.leases[addr], lease)
			p.told.leases[same.(string)] = append(p.told.leases[same.(string)], again)
		}
	}
	require.NoError(p, p.told.ledger.Check())
}

// Where reports say nothing of use, every pick is the one without reports.
func TestWithoutYoungReportsPicksAreExact(t *testing.T) {
	const n, interval = 9, time.Second
	for name, report := range map[string]func(p *pair, addr string, i, step int){
		"none": func(*pair, string, int, int) {},
		"too few": func(p *pair, addr string, i, _ int) {
			if i < n/2 {
				p.told.members[addr].Report(100, 1)
			}
		},
		"lost": func(p *pair, addr string, i, step int) {
			if step == 0 {
				p.told.members[addr].Report(100+rand.Int64N(100), 0)
			}
			if step == 0 && i == n-1 {
				pass(2*interval + 2*state.Tick)
			}
		},
		"below 0": func(p *pair, addr string, _, _ int) { p.told.members[addr].Report(math.MinInt64, 1) },
		"our own": func(p *pair, addr string, _, _ int) {
			p.told.members[addr].Report(int64(len(p.told.leases[addr])), math.NaN())
		},
		"outdated": func(p *pair, addr string, _, _ int) { p.told.members[addr].Report(1, math.MaxFloat64) },
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(e *env) {
				p := newPair(e.T, n, interval)
				if name == "outdated" { // RPCs last for less than a report takes
					for _, addr := range names(n) {
						p.told.members[addr].Report(1, math.MaxFloat64)
					}
					pass(state.Tick)
				}
				for step := range 1500 {
					for i, addr := range names(n) {
						if name != "outdated" {
							report(p, addr, i, step)
						}
					}
					p.step()
				}
			})
		})
	}
}

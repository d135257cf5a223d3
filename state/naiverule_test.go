package state_test

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// naiveRule is the rule of reports said once more: a list of them, the youngest last.
type naiveRule struct {
	*env
	interval time.Duration
	log      []naiveReport
	before   map[string]naiveReport // of an endpoint, its last one
	picks    map[string]int         // since then
	own      map[string]int
}

type naiveReport struct {
	addr         string
	others, rate float64
	at           time.Time
	own          int
}

func newNaiveRule(e *env, interval time.Duration) *naiveRule {
	e.endpointSet.SetReports(interval)
	return &naiveRule{env: e, interval: interval, before: map[string]naiveReport{}, picks: map[string]int{}, own: map[string]int{}}
}

func (n *naiveRule) report(addr string, inFlight int, rps float64) {
	n.members[addr].Report(int64(inFlight), rps)
	was, known := n.before[addr]
	r := naiveReport{addr: addr, others: float64(max(0, inFlight-n.own[addr])), at: time.Now(), own: n.own[addr]}
	r.rate = rps * r.others / float64(max(1, inFlight))
	if known {
		passed := max(time.Since(was.at), state.Tick).Seconds()
		r.rate = max(0, rps-float64(n.picks[addr])/passed)
	}
	n.before[addr], n.picks[addr] = r, 0
	n.forget(addr)
	n.log = append(n.log, r)
}

func (n *naiveRule) forget(addr string) {
	n.log = slices.DeleteFunc(n.log, func(r naiveReport) bool { return r.addr == addr })
}

// want returns what is to be chosen.
func (n *naiveRule) want() string {
	exact, seats := "", map[string]state.MemberSnapshot{}
	load, own, eligible := map[string]float64{}, 0.0, 0
	for _, s := range n.ledger.Snapshot().Endpoints {
		m := s.Members[0]
		if !m.Ready || m.Draining {
			continue
		}
		eligible++
		seats[s.Addresses[0]] = m
		load[s.Addresses[0]] = float64(s.InFlight + s.Penalty)
		if !m.Full {
			own += load[s.Addresses[0]]
		}
		if m.Next {
			exact = s.Addresses[0]
		}
	}
	others, rate, weight := 0.0, 0.0, 0.0
	for _, r := range n.log {
		others, rate, weight = others+r.others, rate+r.rate, weight+seats[r.addr].EffectiveWeight
	}
	if 2*len(n.log) < eligible || others <= own/4 {
		return exact
	}
	second := time.Hour
	if len(n.log) > 1 {
		second = time.Since(n.log[len(n.log)-2].at)
	}
	oldest := min(max(0.2*float64(len(n.log))/rate, second.Seconds()), others/rate, 2*n.interval.Seconds())
	young := slices.DeleteFunc(slices.Clone(n.log), func(r naiveReport) bool { return time.Since(r.at).Seconds() > oldest })
	if len(young) == 0 {
		return exact
	}
	score := func(addr string, others float64) float64 {
		return (others + load[addr] + 1) / seats[addr].EffectiveWeight
	}
	best, low := exact, score(exact, others/weight*seats[exact].EffectiveWeight)
	slices.Reverse(young)
	for _, r := range young {
		if r.addr == exact {
			low = score(exact, r.others)
		}
	}
	for _, r := range young[:min(8, len(young))] {
		if s := score(r.addr, r.others); !seats[r.addr].Full && s < low {
			best, low = r.addr, s
		}
	}
	return best
}

func (n *naiveRule) pick() (byReport bool) {
	exact, scores := "", map[string]state.MemberSnapshot{}
	for _, s := range n.ledger.Snapshot().Endpoints {
		scores[s.Addresses[0]] = s.Members[0]
		if s.Members[0].Next {
			exact = s.Addresses[0]
		}
	}
	if exact == "" {
		return false // all are full
	}
	want := n.want()
	got := n.open()
	require.Equal(n, want, got)
	n.own[got]++
	n.picks[got]++
	for _, s := range n.ledger.Snapshot().Endpoints { // other weights are not overdue by it
		m, was := s.Members[0], scores[s.Addresses[0]]
		if want != exact && m.EffectiveWeight != scores[got].EffectiveWeight {
			require.InDelta(n, was.Score, m.Score, 1e-9)
		}
	}
	return want != exact
}

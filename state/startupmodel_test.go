package state_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// startModel says by the rule alone who is waited for: it knows what it was told of the
// endpoints, and takes their loads from snapshots.
type startModel struct {
	*startEnv
	other     *state.ReadySet // of another level
	endpoints map[string]*startEndpoint
	startups  int // so far
	starting  bool
	begun     map[*startRPC]int // in which one its lease began
}

type startEndpoint struct {
	weight     uint32
	limit      uint32
	connecting time.Time // until when it is waited for; zero when it does not connect
	ready      bool      // in the ready set of the RPCs
}

// Whatever happens while endpoints connect, RPCs wait by the rule, the counts are those
// of live leases, and no reservation is left of it.
func TestRandomStartups(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			e := &startEnv{env: newEnv(t), rpcs: map[string]*startRPC{}}
			e.guard(state.Guards{FailurePenalty: 50 * time.Millisecond, MaxQueued: 1 + rng.IntN(4)})
			m := &startModel{startEnv: e, other: e.endpointSet.NewReadySet(1), endpoints: map[string]*startEndpoint{}, begun: map[*startRPC]int{}}
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				e.list(name)
				m.endpoints[name] = &startEndpoint{}
			}
			for range 300 {
				m.step(rng)
				m.note()
				e.check()
			}
			for name := range e.rpcs {
				e.over(name)
			}
			require.Zero(t, e.ledger.Snapshot().Reserved, "seed %d", seed)
			require.Zero(t, e.ledger.Snapshot().InFlight, "seed %d", seed)
		})
	}
}

// note takes up whether a start-up has begun.
func (m *startModel) note() {
	if is := m.endpointSet.Starting(); is != m.starting {
		m.starting = is
		if is {
			m.startups++
		}
	}
}

func (m *startModel) step(rng *rand.Rand) {
	name := string(rune('a' + rng.IntN(len(m.endpoints))))
	member, ep := m.members[name], m.endpoints[name]
	id := string(rune('A' + rng.IntN(20)))
	rpc := m.rpcs[id]
	weight := uint32(rng.IntN(4))
	switch rng.IntN(14) {
	case 0, 1, 2:
		if ep.connecting.IsZero() { // what it ends is seen before it begins anew
			m.readySet.Remove(member)
			m.other.Remove(member)
			m.note()
		}
		until := time.Now().Add(100 * time.Millisecond)
		m.readySet.SetConnecting(member, weight, until)
		ep.ready, ep.weight, ep.connecting = false, weight, until
		for _, other := range m.endpoints {
			if !other.connecting.IsZero() {
				other.connecting = until
			}
		}
		if weight == 0 {
			ep.connecting = time.Time{}
		}
	case 3:
		m.readySet.Set(member, weight, name)
		ep.ready, ep.weight, ep.connecting = weight > 0, weight, time.Time{}
	case 4:
		m.readySet.Remove(member)
		ep.ready, ep.connecting = false, time.Time{}
	case 5:
		m.other.Set(member, 1, name)
		ep.ready, ep.connecting = false, time.Time{}
	case 6:
		ep.limit = uint32(rng.IntN(5))
		member.SetMaxInFlight(ep.limit)
	case 7:
		pass(time.Duration(rng.IntN(30)) * time.Millisecond)
	case 8:
		m.remove(name)
		m.list(name)
		m.endpoints[name] = &startEndpoint{}
	case 9:
		if rpc != nil {
			m.over(id)
		}
	case 10:
		if rpc != nil && rpc.at != "" { // an attempt fails
			rpc.tried = new(state.Tried)
			rpc.tried.Add(rpc.lease)
			rpc.lease.Fail()
			rpc.at = ""
		}
	default:
		if rpc == nil || rpc.at == "" {
			m.asks(id, rpc)
		}
	}
}

// asks compares what becomes of an RPC with the rule.
func (m *startModel) asks(id string, rpc *startRPC) {
	before := m.ledger.Snapshot()
	lowest, waits, known := m.waits(before)
	got := m.ask(id)
	if got != "." && got != "-" {
		m.begun[m.rpcs[id]] = m.startups
	}
	if rpc != nil || !known {
		return // it may have waited before
	}
	require.Equal(m, waits, got == ".", "%s: %+v", got, before)
	if waits {
		for i, n := range m.ledger.Snapshot().Endpoints {
			if was := before.Endpoints[i]; n.InFlight > was.InFlight {
				require.Equal(m, lowest, float64(was.InFlight+was.Penalty+1)/float64(m.endpoints[n.Addresses[0]].weight))
			}
		}
	}
}

// waits returns the lowest score of those that connect, whether a new RPC is to wait
// for one of that, and whether that is known.
func (m *startModel) waits(s state.Snapshot) (lowest float64, waits, known bool) {
	inFlight, held := int(s.Reserved), s.Reserved
	for _, rpc := range m.rpcs {
		if rpc.at != "" {
			held++
			if m.begun[rpc] == m.startups {
				inFlight++
			}
		}
	}
	lowest, ready, any := math.Inf(1), math.Inf(1), false
	for _, n := range s.Endpoints {
		ep := m.endpoints[n.Addresses[0]]
		load := n.InFlight + n.Penalty
		score := float64(load+1) / float64(ep.weight)
		any = any || ep.ready
		if full := ep.limit > 0 && n.InFlight >= int64(ep.limit); ep.ready && !full {
			ready = min(ready, score)
		}
		if full := ep.limit > 0 && load >= int64(ep.limit); ep.connecting.After(time.Now()) && !full {
			lowest = min(lowest, score)
		}
	}
	known = held == s.InFlight // else some were granted room, and have begun who knows when
	return lowest, m.starting && any && inFlight > 0 && s.Waiting == 0 && lowest < ready, known
}

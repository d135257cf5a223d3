package state_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/state"
)

// weigh lists endpoints of some weights and makes them ready.
func (e *env) weigh(weights ...uint32) []string {
	addrs := names(len(weights))
	e.list(addrs...)
	for i, a := range addrs {
		e.set(a, weights[i])
	}
	return addrs
}

// requireShares requires that of a thousand serial calls each endpoint gets its share,
// but for a few.
func requireShares(t *testing.T, within float64, got map[string]int, weights ...uint32) {
	t.Helper()
	sum := 0.0
	for _, w := range weights {
		sum += float64(w)
	}
	for i, a := range names(len(weights)) {
		require.InDelta(t, 1000*float64(weights[i])/sum, got[a], within, "%s of weight %d in %v", a, weights[i], got)
	}
}

func tally(calls []string) map[string]int {
	got := map[string]int{}
	for _, a := range calls {
		got[a]++
	}
	return got
}

// Serial calls are spread by weight, whatever the caps: an endpoint at its cap keeps
// its turn until it has room.
func TestSerialCallsGoByWeight(t *testing.T) {
	many := make([]uint32, 60)
	for i := range many {
		many[i] = uint32(i + 1)
	}
	for _, tc := range []struct {
		weights []uint32
		limit   uint32
		within  float64
	}{
		{[]uint32{3, 1}, 0, 2}, {[]uint32{5, 3, 1, 1}, 0, 2}, {many, 0, 3},
		{[]uint32{3, 1}, 1, 2}, {[]uint32{5, 3, 1, 1}, 1, 2}, {many, 1, 3}, {[]uint32{1, 1}, 1, 2},
	} {
		t.Run(fmt.Sprint(len(tc.weights), tc.weights[0], " cap ", tc.limit), func(t *testing.T) {
			e := newEnv(t)
			for _, a := range e.weigh(tc.weights...) {
				e.members[a].SetMaxInFlight(tc.limit)
			}
			for range 3 {
				requireShares(t, tc.within, tally(e.calls(1000)), tc.weights...)
				require.NoError(t, e.ledger.Check())
			}
		})
	}
}

// Other channels' calls in between change nothing of how weights share, also where they
// give other weights. (Which endpoint of one weight has waited longest is common to all.)
func TestSerialSharesOfChannelsThatDisagree(t *testing.T) {
	x := newEnv(t)
	y, z := newEnvOn(t, x.ledger), newEnvOn(t, x.ledger)
	x.weigh(3, 1, 2)
	y.weigh(1, 3, 7)
	z.weigh(1, 1, 1)
	var xs, ys []string
	for range 1000 {
		xs = append(xs, x.calls(1)...)
		ys = append(ys, y.calls(1)...)
		z.call()
	}
	requireShares(t, 2, tally(xs), 3, 1, 2)
	requireShares(t, 2, tally(ys), 1, 3, 7)
	require.NoError(t, x.ledger.Check())
}

// A resolver that gives other weights between calls does not spoil the shares.
func TestSharesOutlastChangesOfWeight(t *testing.T) {
	e := newEnv(t)
	addrs := e.weigh(3, 1)
	var calls []string
	for i := range 1000 {
		unit := uint32(1 + i%7)
		e.set(addrs[0], 3*unit)
		e.set(addrs[1], unit)
		calls = append(calls, e.calls(1)...)
	}
	requireShares(t, 2, tally(calls), 3, 1)
}

// Right after its pick an endpoint is less than one RPC above its weighted share of
// what is in flight, whatever channels, releases and changes of weight have left.
func TestPickLeavesNobodyOneAboveItsShare(t *testing.T) {
	weights := []uint32{1, 1, 2, 2, 3, 5, 8, 13, 100}
	e := newEnv(t)
	other := newEnvOn(t, e.ledger)
	addrs := e.weigh(weights...)
	other.weigh(make([]uint32, len(weights))...)
	ready := map[string]float64{}
	for i, a := range addrs {
		other.set(a, uint32(1+i%3))
		ready[a] = float64(weights[i])
	}
	for range 4000 {
		a := addrs[rand.IntN(len(addrs))]
		switch rand.IntN(20) {
		case 0:
			w := rand.Uint32N(20)
			e.set(a, w)
			ready[a] = float64(w)
		case 1, 2:
			other.open()
		case 3, 4:
			other.end(a, rand.IntN(len(other.leases[a])+1))
		case 5:
			e.end(a, rand.IntN(len(e.leases[a])+1))
		default:
			lease, value, ok := e.readySet.Acquire()
			if !ok {
				continue
			}
			got := value.(string)
			e.leases[got] = append(e.leases[got], lease)
			load, weight, loads := 0.0, 0.0, e.loads()
			for a, w := range ready {
				if w > 0 {
					load += float64(loads[a])
					weight += w
				}
			}
			require.Less(t, float64(loads[got]), 1+load*ready[got]/weight+1e-9, "%s of weight %v in %v", got, ready[got], loads)
		}
	}
}

// fleetOf opens a first, second and third stream from each of a thousand processes to a
// hundred servers, and returns how many servers then hold for their weights: the
// coefficient of variation after each.
func fleetOf(t *testing.T, weight func(i int) uint32) (cv [3]float64) {
	const clients, servers = 1000, 100
	var sets [clients]*state.ReadySet
	eps := make([]state.Identity, servers)
	for i := range eps {
		eps[i].Addrs = []string{fmt.Sprint(i)}
	}
	for i := range sets {
		r := state.Open("").NewEndpointSet("fleet")
		t.Cleanup(r.Close)
		sets[i] = r.NewReadySet(0)
		for j, m := range r.Update(nil, eps) {
			sets[i].Set(m, weight(j), j)
		}
	}
	loads := make([]float64, servers)
	for s := range cv {
		for _, v := range sets {
			lease, value, ok := v.Acquire()
			require.True(t, ok)
			t.Cleanup(func() { lease.Release() })
			loads[value.(int)]++
		}
		sum, squares := 0.0, 0.0
		for i, n := range loads {
			x := n / float64(weight(i))
			sum += x
			squares += x * x
		}
		mean := sum / servers
		cv[s] = math.Sqrt(squares/servers-mean*mean) / mean
	}
	return cv
}

// A fleet of processes with few streams each loads servers by weight: nearly as evenly
// as weighted chance, whose variation is that of so many independent draws. One fleet
// strays from its mean by a fourteenth; package order averages over many.
func TestFleetLoadsByWeight(t *testing.T) {
	for name, weight := range map[string]func(i int) uint32{
		"1 to 2, all different": func(i int) uint32 { return uint32(1000 + 1000*i/99) },
		"1 to 10":               func(i int) uint32 { return uint32(1 + i%10) },
		"two classes":           func(i int) uint32 { return uint32(1 + i%2) },
	} {
		t.Run(name, func(t *testing.T) {
			sum, inverse := 0.0, 0.0
			for i := range 100 {
				sum += float64(weight(i))
				inverse += 1 / float64(weight(i))
			}
			requireMost(t, func(uint64) (figures []figure) {
				for s, got := range fleetOf(t, weight) {
					chance := math.Sqrt(sum / 1000 / float64(s+1) * inverse / 100)
					t.Logf("%d streams: cv %.3f, by chance %.3f", s+1, got, chance)
					figures = append(figures, figure{fmt.Sprintf("cv of %d streams", s+1), got, 1.5 * chance})
				}
				return figures
			})
		})
	}
}

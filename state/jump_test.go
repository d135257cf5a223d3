package state

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// jumps is a ready set of n members whose loads are set to anything at any time, by
// penalties.
type jumps struct {
	*Ledger
	view *ReadySet
	ms   []*Member
}

func newJumps(n int, weightOf func(i int) uint32) *jumps {
	j := &jumps{Ledger: newLedger("")} // not in the registry
	r := j.NewEndpointSet("test")
	j.view = r.NewReadySet(0)
	eps := make([]Identity, n)
	for i := range eps {
		eps[i].Addrs = []string{fmt.Sprint(i)}
	}
	j.ms = r.Update(nil, eps)
	for i, m := range j.ms {
		j.view.Set(m, weightOf(i), i)
	}
	return j
}

func (j *jumps) jump(i int, load int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := j.ms[i].endpoint
	n.penalty, n.penalties = load, nil
	delete(j.penalized, n)
	if load > 0 {
		n.penalties = []penalty{{until: j.clock.read() + time.Hour, units: load}}
		j.penalized[n] = struct{}{}
		j.startClock()
	}
	n.shift()
}

// least is the brute force: the lowest score, and how long the one that waits
// longest of those with it has waited.
func (j *jumps) least() (score float64, stamp uint64) {
	score = math.Inf(1)
	for _, m := range j.ms {
		if m.seat == none {
			continue
		}
		s := float64(m.endpoint.load+1) / float64(m.weight)
		if waits := j.stamp(m); s < score || s == score && waits < stamp {
			score, stamp = s, waits
		}
	}
	return score, stamp
}

func (j *jumps) stamp(m *Member) uint64 { return j.view.order.seats[m.seat].stamp }

// flap takes a member out of the ready set or, if it was out, puts it back.
func (j *jumps) flap(i int, weight uint32) {
	if m := j.ms[i]; m.readySet == nil {
		j.view.Set(m, weight, i)
	} else {
		j.view.Remove(m)
	}
}

// requireFirst compares the choice with the brute force.
func (j *jumps) requireFirst(t *testing.T, step int) {
	t.Helper()
	score, stamp := j.least()
	first := j.view.order.first()
	if math.IsInf(score, 1) {
		require.Nil(t, first, "step %d", step)
		return
	}
	o := &j.view.order
	require.Equal(t, score, o.score(o.buckets[o.seats[first.member.seat].bucket].class), "step %d", step)
	require.Equal(t, stamp, j.stamp(first.member), "step %d", step)
}

// A load that jumps finds its place at once, wherever that is, and so does one
// that comes back into the ready set. Scores are whole numbers: equals of several
// weights abound where they are few.
func TestOrderFollowsJumps(t *testing.T) {
	weightings := map[string]func(i int) uint32{
		"equal":    func(int) uint32 { return 1 },
		"four":     func(i int) uint32 { return []uint32{1, 2, 3, 5}[i%4] },
		"seventy":  func(i int) uint32 { return uint32(i%70 + 1) },
		"distinct": func(i int) uint32 { return uint32(i + 1) },
	}
	for name, weightOf := range weightings {
		for _, n := range []int{1, 2, 9, 300} {
			for _, widest := range []int64{3, int64(4 * n)} {
				t.Run(fmt.Sprint(name, "/", n, "/", widest), func(t *testing.T) {
					j := newJumps(n, weightOf)
					for step := range 2000 {
						i := rand.IntN(n)
						if step%7 == 0 {
							j.flap(i, weightOf(i))
						} else {
							j.jump(i, (rand.Int64N(rand.Int64N(widest)+1)+1)*int64(weightOf(i))-1)
						}
						j.requireFirst(t, step)
					}
					require.NoError(t, j.Check())
				})
			}
		}
	}
}

// Lanes thin out by four: so many buckets are on each that a search is short,
// and so few that it skips. The bounds are ten standard deviations of the
// first lane, seven of the third.
func TestLanesThinOut(t *testing.T) {
	const n = 8192
	j := newJumps(n, func(int) uint32 { return 1 })
	for i := range n {
		j.jump(i, int64(i))
	}
	require.NoError(t, j.Check())
	o := &j.view.order
	c := &o.classes[0]
	onLane := func(i int) (found int) {
		for b := c.lanes[i]; b != none; b = o.buckets[b].express[i].next {
			found++
		}
		return found
	}
	require.GreaterOrEqual(t, len(c.lanes), 3)
	require.InDelta(t, n/4, onLane(0), 400)
	require.InDelta(t, n/16, onLane(1), 250)
	require.InDelta(t, n/64, onLane(2), 80)
}

package state

import (
	"container/heap"
	"math"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// none is the heap's place of a member that does not wait.
const none int32 = -1

// waits are the empty members of a ready set that ramp, by the pick that each is due
// at: a small weight would keep an empty member from any pick as long as the
// others are not busy. So one in n ÷ share picks goes to it at least, rounded up,
// where n counts the ready set's members of a weight above 0.
type waits struct {
	members []*Member
	stale   bool // n or a share has changed
}

// await lets m wait exactly while it is empty, ramps and may be chosen.
func (m *Member) await() {
	waiting := m.handle != order.None && m.ramping() && m.endpoint.inFlight == 0
	switch {
	case waiting && m.place == none:
		m.last = m.readySet.picks
		m.due = m.last + m.readySet.pause(m)
		heap.Push(&m.readySet.waits, m)
	case !waiting && m.place != none:
		heap.Remove(&m.readySet.waits, int(m.place))
	}
}

// pause returns how many picks of the ready set go by until one is m's.
func (v *ReadySet) pause(m *Member) uint64 {
	return uint64(math.Ceil(float64(v.eligible) / m.slowStartFactor))
}

// overdue returns the member that the ready set's next pick is due to, or nil.
func (v *ReadySet) overdue() *Member {
	w := &v.waits
	if w.stale {
		w.stale = false
		for _, m := range w.members {
			m.due = m.last + v.pause(m)
		}
		heap.Init(w)
	}
	if m := w.members[0]; v.picks+1 >= m.due {
		return m
	}
	return nil
}

// Len, Less, Swap, Push and Pop are for container/heap.
func (w *waits) Len() int           { return len(w.members) }
func (w *waits) Less(i, j int) bool { return w.members[i].due < w.members[j].due }

func (w *waits) Swap(i, j int) {
	ms := w.members
	ms[i], ms[j] = ms[j], ms[i]
	ms[i].place, ms[j].place = int32(i), int32(j)
}

func (w *waits) Push(x any) {
	m := x.(*Member)
	m.place = int32(len(w.members))
	w.members = append(w.members, m)
}

func (w *waits) Pop() any {
	last := len(w.members) - 1
	m := w.members[last]
	w.members[last] = nil
	w.members = w.members[:last]
	m.place = none
	return m
}

package state

import (
	"container/heap"
	"math"
)

// minShareHeap is the empty members of a ready set that start slowly, by the pick
// that each is due at. A small weight would keep an empty member from any pick as
// long as the others are not busy. So it gets one in n ÷ factor picks at least,
// rounded up, where n counts the ready set's members of a weight above 0.
type minShareHeap struct {
	members []*Member
	stale   bool // n or a factor has changed
}

// memberMinShare is a member's part in the heap.
type memberMinShare struct {
	index int32  // none while it is not in the heap
	last  uint64 // the ready set's picks when it was empty, or chosen, last
	due   uint64 // the pick of the ready set that is its own
}

// none is the heap's index of a member that is not in it.
const none int32 = -1

// updateMinShare keeps m in the heap exactly while it is empty, starts slowly and may
// be chosen.
func (m *Member) updateMinShare() {
	in := m.order != nil && !m.full && m.ramping() && m.endpoint.load.inFlight == 0
	s := &m.minShare
	switch v := m.eligibleIn; {
	case in && s.index == none:
		s.last = v.picks
		s.due = s.last + v.interval(m)
		heap.Push(&v.minShare, m)
	case !in && s.index != none:
		heap.Remove(&v.minShare, int(s.index))
	}
}

// interval returns how many picks of the ready set go by until one is m's.
func (v *ReadySet) interval(m *Member) uint64 {
	return uint64(math.Ceil(float64(v.eligible) / m.slowStart.factor))
}

func (v *ReadySet) setEligible(n int) { v.eligible, v.minShare.stale = n, true }

// nextDue returns the member that the ready set's next pick is due to, or nil. The
// heap must not be empty.
func (v *ReadySet) nextDue() *Member {
	h := &v.minShare
	if h.stale {
		h.stale = false
		for _, m := range h.members {
			m.minShare.due = m.minShare.last + v.interval(m)
		}
		heap.Init(h)
	}
	if m := h.members[0]; v.picks+1 >= m.minShare.due {
		return m
	}
	return nil
}

// Len, Less, Swap, Push and Pop are for container/heap.
func (h *minShareHeap) Len() int { return len(h.members) }

func (h *minShareHeap) Less(i, j int) bool {
	return h.members[i].minShare.due < h.members[j].minShare.due
}

func (h *minShareHeap) Swap(i, j int) {
	ms := h.members
	ms[i], ms[j] = ms[j], ms[i]
	ms[i].minShare.index, ms[j].minShare.index = int32(i), int32(j)
}

func (h *minShareHeap) Push(x any) {
	m := x.(*Member)
	m.minShare.index = int32(len(h.members))
	h.members = append(h.members, m)
}

func (h *minShareHeap) Pop() any {
	last := len(h.members) - 1
	m := h.members[last]
	h.members[last] = nil
	h.members = h.members[:last]
	m.minShare.index = none
	return m
}

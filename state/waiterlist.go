package state

import "container/list"

// waiterList is waiters in order of arrival. The zero list is empty.
type waiterList struct{ list list.List }

func (l *waiterList) len() int { return l.list.Len() }

// first returns the waiter that came first, nil without one.
func (l *waiterList) first() *waiter { return waiterAt(l.list.Front()) }

func waiterAt(e *list.Element) *waiter {
	if e == nil {
		return nil
	}
	return e.Value.(*waiter)
}

// all calls do with each waiter, which do may take out.
func (l *waiterList) all(do func(w *waiter)) {
	for e := l.list.Front(); e != nil; {
		w := waiterAt(e)
		e = e.Next()
		do(w)
	}
}

func (l *waiterList) remove(w *waiter) {
	l.list.Remove(w.element)
	w.element = nil
}

// insert puts w at its place. It looks for it from both ends: nearly all waiters
// belong at the end, and those that come back near the front.
func (l *waiterList) insert(w *waiter) {
	front, back := l.list.Front(), l.list.Back()
	for {
		switch {
		case back == nil:
			w.element = l.list.PushFront(w)
			return
		case waiterAt(back).arrival < w.arrival:
			w.element = l.list.InsertAfter(w, back)
			return
		case waiterAt(front).arrival > w.arrival:
			w.element = l.list.InsertBefore(w, front)
			return
		}
		front, back = front.Next(), back.Prev()
	}
}

// merge puts waiters, which are in order of arrival, at their places in one walk.
func (l *waiterList) merge(ws []*waiter) {
	e := l.list.Front()
	for _, w := range ws {
		for e != nil && waiterAt(e).arrival < w.arrival {
			e = e.Next()
		}
		if e == nil {
			w.element = l.list.PushBack(w)
		} else {
			w.element = l.list.InsertBefore(w, e)
		}
	}
}

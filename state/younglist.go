package state

import "github.com/leastconn/grpc-leastconn/state/internal/order"

// youngList is a list of entries of young, linked by handle, the oldest first.
type youngList struct{ oldest, youngest order.Handle }

var noYoung = youngList{order.None, order.None}

func (l *youngList) push(entries []youngEntry, h order.Handle) {
	e := &entries[h]
	e.older, e.next = l.youngest, order.None
	if l.youngest == order.None {
		l.oldest = h
	} else {
		entries[l.youngest].next = h
	}
	l.youngest = h
}

func (l *youngList) remove(entries []youngEntry, h order.Handle) {
	e := &entries[h]
	if e.older == order.None {
		l.oldest = e.next
	} else {
		entries[e.older].next = e.next
	}
	if e.next == order.None {
		l.youngest = e.older
	} else {
		entries[e.next].older = e.older
	}
}

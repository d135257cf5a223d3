package reports

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/state"
)

// process has the endpoints that connections of the process are subscribed to.
var process = struct {
	// mu is a leaf: neither gRPC nor a listener is called under it.
	mu        sync.Mutex
	endpoints map[state.EndpointID]*endpoint
}{endpoints: map[state.EndpointID]*endpoint{}}

// Subscription is a connection that listens to its endpoint's server, or would if no other
// did. It keeps the member alive until Cancel.
type Subscription struct {
	conn     balancer.SubConn
	interval time.Duration
	report   Report
	endpoint *endpoint
}

// endpoint is one that connections are subscribed to. process.mu guards it.
type endpoint struct {
	id            state.EndpointID
	subscriptions []*Subscription // by interval, then by arrival
	listening     *listening      // of the first of them
	interval      time.Duration   // of the first of them
	due           time.Time       // when it begins to listen, or began
	reported      time.Time       // the last time; zero before
}

// Subscribe has conn, a connection of the process to the endpoint that is READY, listen once
// in each interval. Of several the one with the shortest interval does, and of these the
// first. It begins at a random time within one interval, so that the clients of a fleet,
// which connect to a new server at the same moment, are not told at the same moment: else all
// of them would send their next RPCs there.
func Subscribe(id state.EndpointID, conn balancer.SubConn, interval time.Duration, report Report) *Subscription {
	process.mu.Lock()
	e := process.endpoints[id]
	if e == nil {
		e = &endpoint{id: id}
		process.endpoints[id] = e
	}
	s := &Subscription{conn, interval, report, e}
	at, _ := slices.BinarySearchFunc(e.subscriptions, interval+1, func(s *Subscription, i time.Duration) int { return cmp.Compare(s.interval, i) })
	e.subscriptions = slices.Insert(e.subscriptions, at, s)
	replaced := e.electLocked()
	process.mu.Unlock()
	replaced.end()
	return s
}

// Cancel ends the subscription. It waits until a report that is being taken up is. It must be
// called once.
func (s *Subscription) Cancel() {
	e := s.endpoint
	process.mu.Lock()
	i := slices.Index(e.subscriptions, s)
	e.subscriptions = slices.Delete(e.subscriptions, i, i+1)
	replaced := e.electLocked()
	process.mu.Unlock()
	replaced.end()
}

// electLocked has the first subscription listen. It returns who did until now, if that is
// another one, to be ended without the lock.
func (e *endpoint) electLocked() (replaced *listening) {
	if len(e.subscriptions) == 0 {
		delete(process.endpoints, e.id)
		replaced, e.listening = e.listening, nil
		return replaced
	}
	first := e.subscriptions[0]
	if e.listening != nil && e.listening.subscription == first {
		return nil
	}
	switch {
	case first.interval != e.interval: // where all change it at one moment, each has a new phase
		e.interval = first.interval
		e.due = time.Now().Add(rand.N(first.interval))
	case !e.reported.IsZero():
		e.due = e.reported.Add(first.interval)
	}
	replaced = e.listening
	e.listening = begin(first, time.Until(e.due))
	return replaced
}

// listening is a time during which a subscription is the one that listens.
type listening struct {
	subscription *Subscription
	timer        *time.Timer

	mu   sync.Mutex // held while the connection is told; process.mu comes after it
	over bool
	stop func() // nil before it begins
}

// begin has s listen after so long.
func begin(s *Subscription, after time.Duration) *listening {
	l := &listening{subscription: s}
	l.timer = time.AfterFunc(after, l.begin)
	return l
}

func (l *listening) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if listen := registered.Load(); !l.over && listen != nil {
		l.stop = (*listen)(l.subscription.conn, l.subscription.interval, l.report)
	}
}

// report passes a report on, unless another connection listens by now.
func (l *listening) report(inFlight int64, rps float64) {
	e := l.subscription.endpoint
	process.mu.Lock()
	current := e.listening == l
	if current {
		e.reported = time.Now()
	}
	process.mu.Unlock()
	if current {
		l.subscription.report(inFlight, rps)
	}
}

// end ends it, if there is one.
func (l *listening) end() {
	if l == nil {
		return
	}
	l.timer.Stop()
	l.mu.Lock()
	l.over = true
	stop := l.stop
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
}

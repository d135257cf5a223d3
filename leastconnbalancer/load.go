package leastconnbalancer

import (
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/leastconn/grpc-leastconn/picker"
	"github.com/leastconn/grpc-leastconn/state"
)

// load is the balancer's part in the ledger of its resource key, with what its
// configuration says of it. The balancer's mu guards it.
type load struct {
	key       string
	set       *state.EndpointSet // nil before the first list
	guards    state.Guards
	rebalance state.Rebalance
	limit     uint32         // of RPCs in flight, for endpoints that have none of their own; 0: none
	reports   time.Duration  // how often servers are asked for their load; 0: never
	served    *picker.Picker // whose ready sets have room for RPCs that wait
	waker     *waker         // nil before a limit is applied
	drains    bool           // a member is drained
}

// applyConfig takes up the configuration. With another resource key the balancer
// moves to that key's ledger with the children that stay; RPCs in flight stay
// counted where they are.
func (b *leastConn) applyConfig(key string, cfg *Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.levels.setFailoverLocked(cfg.priorityFailover())
	b.levels.setStartupWaitLocked(cfg.startupWait())
	b.applyStreamLimitLocked(cfg.ignoresStreamLimit())
	guards := cfg.guards()
	guards.Wake = b.load.waker.signal()
	changed := b.load.guards != guards
	b.load.guards, b.load.limit, b.load.rebalance, b.load.reports = guards, cfg.maxInFlight(), cfg.rebalance(), cfg.reportsInterval()
	b.load.rebalance.Planned = logPlan(b.target)
	if b.load.set == nil || b.load.key != key {
		b.switchLedgerLocked(key)
		return
	}
	if changed {
		b.load.set.SetGuards(guards)
	}
	b.load.set.SetRebalance(b.load.rebalance)
	b.load.set.SetReports(b.load.reports)
	for _, c := range b.children.listed {
		b.setLimitLocked(c)
	}
}

// switchLedgerLocked takes the balancer to the ledger of the key.
func (b *leastConn) switchLedgerLocked(key string) {
	if b.load.set != nil {
		b.load.set.Close() // first: RPCs that wait there lose what they were granted
	}
	set := state.Open(key).NewEndpointSet(b.target)
	set.OnDrains(b.updateDrains)
	if b.load.set != nil {
		set.StartWarm()
	}
	set.SetGuards(b.load.guards)
	set.SetRebalance(b.load.rebalance)
	set.SetReports(b.load.reports)
	b.load.key, b.load.set = key, set
	b.levels.switchLocked(set)
	stay, ids := b.children.staying()
	for i, m := range set.Update(nil, ids) {
		c := stay[i]
		c.member, c.appliedLimit = m, 0
		m.SetConnectivity(c.shown)
		c.moveConnectionLocked()
		b.setLimitLocked(c)
		switch c.state {
		case connectivity.Ready:
			c.setReadyLocked()
		case connectivity.TransientFailure:
			m.StartSlowly()
		default:
			c.level.waitLocked(c)
		}
	}
}

// setLimitLocked gives the child's member its limit, if that is another one.
func (b *leastConn) setLimitLocked(c *child) {
	limit := valueOr(c.endpoint.facts.limit, b.load.limit)
	if c.appliedLimit != limit && c.member != nil {
		b.startWakerLocked()
		c.appliedLimit = limit
		c.member.SetMaxInFlight(limit)
	}
}

// startWakerLocked starts the waker, if there is none yet, and gives it to the
// endpoint set.
func (b *leastConn) startWakerLocked() {
	if b.load.waker != nil {
		return
	}
	b.load.waker = newWaker(b.wakePause, b.publish)
	b.load.guards.Wake = b.load.waker.signal()
	b.load.set.SetGuards(b.load.guards)
}

// serveLocked tells the endpoint set where RPCs that wait may find room: nowhere while
// no level serves.
func (ld *load) serveLocked(l *level) {
	if l == nil {
		l = &level{}
	}
	if ld.served != l.picker {
		ld.served = l.picker
		ld.set.SetQueueSets(l.readySets...)
	}
}

// wakePause returns how long the waker waits for more that have been given room.
func (b *leastConn) wakePause() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0
	}
	return b.load.set.WakePause()
}

// waker publishes a picker when RPCs that wait have been given room, since that
// is what gRPC wakes them by. Signals that come while it does so make one more
// of it together.
type waker struct {
	wake chan struct{} // with a buffer of one
	done chan struct{}
}

func newWaker(pause func() time.Duration, publish func()) *waker {
	w := &waker{wake: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		for {
			select {
			case <-w.wake:
				if d := pause(); d > 0 {
					time.Sleep(d) // 25 ms at most
				}
				publish()
			case <-w.done:
				return
			}
		}
	}()
	return w
}

// signal returns what the waker is woken by, nil without one.
func (w *waker) signal() chan<- struct{} {
	if w == nil {
		return nil
	}
	return w.wake
}

// stop ends the waker, if there is one.
func (w *waker) stop() {
	if w != nil {
		close(w.done)
	}
}

package leastconnbalancer

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// otherStreams are the streams on a connection that no RPC of the channel has: they take
// room where the server limits streams. They end when the SubConn is not READY any more.
type otherStreams struct {
	health bool
	users  map[balancer.ProducerBuilder]int // each producer has one, as that of ORCA reports
	ends   map[*func()]struct{}             // of the producers that are in use
}

func newOtherStreams() *otherStreams {
	return &otherStreams{users: map[balancer.ProducerBuilder]int{}, ends: map[*func()]struct{}{}}
}

// GetOrBuildProducer notes the producer's stream, and how to end it.
func (cn *connection) GetOrBuildProducer(pb balancer.ProducerBuilder) (balancer.Producer, func()) {
	p, end := cn.SubConn.GetOrBuildProducer(pb)
	mu := &cn.child.parent.mu
	mu.Lock()
	defer mu.Unlock()
	others := cn.others
	others.ends[&end] = struct{}{}
	if others.users[pb]++; others.users[pb] == 1 {
		cn.addOthersLocked(1)
	}
	ended := false
	return p, func() {
		end()
		mu.Lock()
		defer mu.Unlock()
		delete(others.ends, &end)
		if ended || cn.others != others {
			return
		}
		ended = true
		if others.users[pb]--; others.users[pb] == 0 {
			delete(others.users, pb)
			cn.addOthersLocked(-1)
		}
	}
}

// RegisterHealthListener notes whether a stream of health checks tells what the listener
// hears. Where there are no health checks it hears READY, first and only.
func (cn *connection) RegisterHealthListener(listener func(balancer.SubConnState)) {
	cn.setHealthStream(false)
	if listener == nil {
		cn.SubConn.RegisterHealthListener(nil)
		return
	}
	cn.SubConn.RegisterHealthListener(func(s balancer.SubConnState) {
		if s.ConnectivityState != connectivity.Ready {
			cn.setHealthStream(true)
		}
		cn.noteHealth(s)
		listener(s)
	})
}

func (cn *connection) setHealthStream(is bool) {
	mu := &cn.child.parent.mu
	mu.Lock()
	defer mu.Unlock()
	if cn.others.health == is {
		return
	}
	cn.others.health = is
	if is {
		cn.addOthersLocked(1)
	} else {
		cn.addOthersLocked(-1)
	}
}

func (cn *connection) addOthersLocked(n int) {
	if t := cn.transport; t != nil {
		t.counted().AddOthers(n)
	}
}

// endListeners ends the health stream and the producers, as a shutdown would.
func (cn *connection) endListeners() {
	mu := &cn.child.parent.mu
	mu.Lock()
	ends := cn.others.ends
	cn.others.ends = map[*func()]struct{}{}
	mu.Unlock()
	cn.RegisterHealthListener(nil)
	for end := range ends {
		(*end)()
	}
}

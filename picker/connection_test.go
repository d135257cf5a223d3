package picker

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"

	"github.com/leastconn/grpc-leastconn/state"
)

// conn is a connection that the endpoints of an env may have.
func newConn(idle func()) *Connection {
	return NewConnection(&endpointChild{name: "child's"}, &endpointChild{name: "gRPC's"}, idle)
}

// connected picks a connection, and before that does something.
type connected struct {
	conn   *Connection
	before func()
	done   func(balancer.DoneInfo)
}

func (c *connected) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	if c.before != nil {
		c.before()
	}
	return balancer.PickResult{SubConn: c.conn, Done: c.done}, nil
}

// A pick hands on what the connection is to gRPC, and holds it until the first Done.
func TestPickHoldsTheConnection(t *testing.T) {
	for name, done := range map[string]func(balancer.DoneInfo){"without": nil, "with": func(balancer.DoneInfo) {}} {
		for _, info := range []balancer.DoneInfo{success, failure, notSent} {
			idle := make(chan struct{}, 10)
			c := newConn(func() { idle <- struct{}{} })
			s := newEnv(t, "")
			s.members["a"] = s.readySets[0].EndpointSet().Update(nil, identities("a"))[0]
			s.readySets[0].Set(s.members["a"], 1, &connected{conn: c, done: done})
			_, first := s.rpc().pickConn(s)
			_, second := s.rpc().pickConn(s)
			first(info)
			require.False(t, c.Close(), "%s a Done of the child", name)
			first(info)
			require.Empty(t, idle)
			second(info)
			select {
			case <-idle:
			case <-time.After(time.Minute):
				t.Fatal("the connection has no RPC, and nobody is told")
			}
		}
	}
}

// An RPC that picks a connection when it has just been closed picks again; that is
// no attempt.
func TestClosedConnectionIsPickedAgain(t *testing.T) {
	for kind, explicit := range map[string]bool{"none": false, "explicit": true} {
		s := newEnv(t, "", "")
		for level, name := range []string{"a", "b"} {
			s.members[name] = s.readySets[level].EndpointSet().Update(nil, identities(name))[0]
		}
		c := newConn(func() {})
		before := func() {
			s.lost(0, "a")
			s.readySets[0].Set(s.members["b"], 1, &connected{conn: newConn(nil)})
			c.Close()
		}
		s.readySets[0].Set(s.members["a"], 1, &connected{conn: c, before: before})
		r := s.rpc()
		if explicit {
			r = s.recorded()
		}
		_, done := r.pickConn(s)
		require.EqualValues(t, 1, s.ledger.Snapshot().InFlight)
		for _, ep := range s.ledger.Snapshot().Endpoints {
			require.Equal(t, ep.Addresses[0] == "b", ep.InFlight == 1, "record: %s", kind)
		}
		done(success)
	}
}

// A connection with RPCs that come and go is closed once none has it, and none
// begins later.
func TestConnectionIsClosedWhenIdle(t *testing.T) {
	for range 500 {
		var live, late atomic.Int64
		idle := make(chan struct{}, 100)
		c := newConn(func() {
			late.Add(live.Load())
			idle <- struct{}{}
		})
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for c.begin() {
					live.Add(1)
					live.Add(-1)
					c.end()
				}
			})
		}
		if c.Close() {
			idle <- struct{}{}
		}
		<-idle
		callers.Wait()
		require.Zero(t, late.Load())
		require.False(t, c.begin())
	}
}

func identities(name string) []state.Identity { return []state.Identity{{Addrs: []string{name}}} }

// pickConn makes a pick whose SubConn must be gRPC's.
func (r rpc) pickConn(s *env) (string, func(balancer.DoneInfo)) {
	s.Helper()
	name, done := r.pick(s)
	require.Equal(s, "gRPC's", name)
	return name, done
}

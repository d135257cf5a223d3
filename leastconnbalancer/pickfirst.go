package leastconnbalancer

import (
	"sync"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"
)

// pickFirst is the pick_first policy of one endpoint, called by one at a time.
type pickFirst struct {
	// mu comes before the policy's own locks and the parent's mu.
	mu       sync.Mutex
	balancer balancer.Balancer
	closed   bool
}

func (p *pickFirst) updateClientConnState(ep resolver.Endpoint, attrs *attributes.Attributes) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.balancer.UpdateClientConnState(balancer.ClientConnState{
		ResolverState: resolver.State{Endpoints: []resolver.Endpoint{ep}, Attributes: attrs},
	})
}

func (p *pickFirst) resolverError(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.balancer.ResolverError(err)
}

// exitIdle also runs on a goroutine of its own, which may come after close.
func (p *pickFirst) exitIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.balancer.ExitIdle()
	}
}

func (p *pickFirst) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.balancer.Close()
	}
}

// closeDelay is how long an endpoint that has left keeps its connection while
// RPCs are in flight: longer than an RPC takes from its pick to its stream.
const closeDelay = 5 * time.Second

// closing are the policies of endpoints that have left with RPCs in flight, by
// the endpoint's key. gRPC lets an RPC hang that was picked before its connection
// is closed and asks for its stream after that, if the connection is kept open by
// other streams. There is one policy for a key: lists that flap do not pile up
// connections.
type closing struct {
	mu    sync.Mutex // comes before no other lock
	byKey map[string]delayedClose
}

type delayedClose struct {
	policy *pickFirst
	timer  *time.Timer
}

// end closes the policy now.
func (d delayedClose) end() {
	if d.timer != nil {
		d.timer.Stop()
		d.policy.close()
	}
}

// add closes the policy after closeDelay, and at once the one it replaces.
func (cl *closing) add(key string, p *pickFirst) {
	cl.mu.Lock()
	before := cl.byKey[key]
	if cl.byKey == nil {
		cl.byKey = map[string]delayedClose{}
	}
	cl.byKey[key] = delayedClose{p, time.AfterFunc(closeDelay, func() {
		cl.mu.Lock()
		if cl.byKey[key].policy == p {
			delete(cl.byKey, key)
		}
		cl.mu.Unlock()
		p.close()
	})}
	cl.mu.Unlock()
	before.end()
}

// closeAll closes all of them now.
func (cl *closing) closeAll() {
	cl.mu.Lock()
	all := cl.byKey
	cl.byKey = nil
	cl.mu.Unlock()
	for _, d := range all {
		d.end()
	}
}

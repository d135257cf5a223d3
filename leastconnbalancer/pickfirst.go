package leastconnbalancer

import (
	"sync"

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

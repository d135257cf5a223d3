package main

import (
	"context"
	"net"
	"sync"
)

// dials makes the connections of a channel and counts them by address, which shows when one is replaced.
type dials struct {
	mu sync.Mutex
	by map[string]int
}

func newDials() *dials { return &dials{by: make(map[string]int)} }

// dial is the channel's dialer.
func (d *dials) dial(ctx context.Context, addr string) (net.Conn, error) {
	d.mu.Lock()
	d.by[addr]++
	d.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

// to is how many connections to h have been begun.
func (d *dials) to(h host) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.by[h.endpoint.Addresses[0].Addr]
}

package trial

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
func (d *dials) to(h Host) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.by[h.Endpoint.Addresses[0].Addr]
}

// total is how many connections have been begun.
func (d *dials) total() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 0
	for _, n := range d.by {
		total += n
	}
	return total
}

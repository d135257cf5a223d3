package leastconnbalancer_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// retryAtOnce is how long a channel waits that is to connect again quickly.
const retryAtOnce = 5 * time.Millisecond

// quickly makes a channel try again at once to connect.
func quickly() leastconntest.ChannelConfig {
	return leastconntest.ChannelConfig{ServiceConfig: withoutPenalty, DialOptions: []grpc.DialOption{retryAfter(retryAtOnce)}}
}

// retryAfter is how long a channel waits before it connects again.
func retryAfter(d time.Duration) grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: d, Multiplier: 1, MaxDelay: d},
		MinConnectTimeout: patience,
	})
}

func dialAlias(ctx context.Context, addr string) (net.Conn, error) {
	_, addr, _ = strings.Cut(addr, "@")
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

// dialer makes a channel's connections. It counts the attempts by node, and can
// let them wait or fail.
type dialer struct {
	mu    sync.Mutex
	begun map[string]int
	gates map[string]chan struct{}
	errs  map[string]error
}

func newDialer() *dialer {
	return &dialer{begun: map[string]int{}, gates: map[string]chan struct{}{}, errs: map[string]error{}}
}

// options are those of a channel that connects through d and waits so long
// before it connects again.
func (d *dialer) options(retry time.Duration) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(d.dial), retryAfter(retry)}
}

func (d *dialer) dial(ctx context.Context, addr string) (net.Conn, error) {
	d.mu.Lock()
	d.begun[addr]++
	gate := d.gates[addr]
	d.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	d.mu.Lock()
	err := d.errs[addr]
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

// attempts is how many connections to the node have been begun.
func (d *dialer) attempts(n *leastconntest.Node) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.begun[n.Addr()]
}

// shut lets connections to the nodes wait until open.
func (d *dialer) shut(nodes ...*leastconntest.Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range nodes {
		d.gates[n.Addr()] = make(chan struct{})
	}
}

func (d *dialer) open(nodes ...*leastconntest.Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range nodes {
		close(d.gates[n.Addr()])
		delete(d.gates, n.Addr())
	}
}

// fail lets connections to the nodes fail with err, nil ends that.
func (d *dialer) fail(err error, nodes ...*leastconntest.Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range nodes {
		d.errs[n.Addr()] = err
	}
}

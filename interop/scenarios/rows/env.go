package rows

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// env is what a row with nodes of its own is played in: one channel to them.
type env struct {
	*leastconntest.Channel
	nodes []*leastconntest.Node
}

// rowPlay plays a row. The channel has no list at first.
type rowPlay func(ctx context.Context, e *env) (got Figures, deviations []string, err error)

// backSoon has a channel find servers that are back at once, and not, by chance, one much later than another.
var backSoon = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond},
	MinConnectTimeout: leastconntest.DefaultTimeout,
})

// onNodes starts nodes and a channel for a play, and adds to the deviations what the channel's ledger still counts once all
// RPCs have ended. Config returns the policy's configuration; nil is the one that it has.
func onNodes(play rowPlay, config func(scenario.Policy) string, opts ...leastconntest.Options) func(context.Context, scenario.Policy) Cell {
	return func(ctx context.Context, p scenario.Policy) Cell {
		e := &env{}
		defer func() { leastconntest.CloseNodes(e.nodes...) }()
		for _, o := range opts {
			n, err := leastconntest.StartNode(o)
			if err != nil {
				return Cell{Err: err}
			}
			e.nodes = append(e.nodes, n)
		}
		if config != nil {
			p.Config = config(p)
		}
		var err error
		e.Channel, err = p.Dial(leastconntest.ChannelConfig{DialOptions: []grpc.DialOption{backSoon}})
		if err != nil {
			return Cell{Err: err}
		}
		defer e.Close()
		got, deviations, err := play(ctx, e)
		if err != nil {
			return Cell{Err: err}
		}
		e.Close() // ends its sessions
		if err := leastconntest.WaitIdle(ctx, e.Key()); err != nil {
			deviations = append(deviations, err.Error())
		}
		return Cell{Got: got, Deviations: deviations}
	}
}

// list has the resolver list endpoints and waits until fresh ones of the nodes are used.
func (e *env) list(ctx context.Context, endpoints []resolver.Endpoint, fresh ...*leastconntest.Node) error {
	if err := e.Update(endpoints...); err != nil {
		return err
	}
	return e.WaitServed(ctx, fresh...)
}

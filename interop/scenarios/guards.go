package main

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest/trial"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// guarded runs a row on nodes of its own, and adds to what is off what it leaves behind.
func guarded(play func(ctx context.Context, p trial.Policy, nodes []*leastconntest.Node) cell, opts ...leastconntest.Options) func(context.Context, trial.Policy) cell {
	return func(ctx context.Context, p trial.Policy) cell {
		var nodes []*leastconntest.Node
		defer func() { leastconntest.CloseNodes(nodes...) }()
		for _, o := range opts {
			n, err := leastconntest.StartNode(o)
			if err != nil {
				return cell{err: err}
			}
			nodes = append(nodes, n)
		}
		c := play(ctx, p, nodes)
		if c.err == nil {
			if leastconntest.WaitFor(ctx, "the end of all RPCs", func() bool { return leftovers() == nil }) != nil {
				c.off = append(c.off, leftovers()...)
			}
		}
		return c
	}
}

// fullRow is a server that takes two streams per connection, and says so to the policies that can be told.
func fullRow() row {
	exact := placed{counts: map[string]int{"a": 2, "b": 10}}
	return row{
		name: "full server", change: "a takes 2 streams at a time, maxInFlight says so; 12 open at once",
		measure: "sessions by server, and those that hang", want: exact.String(), exact: exact,
		play: guarded(func(ctx context.Context, p trial.Policy, nodes []*leastconntest.Node) cell {
			capped := lcresolver.SetMaxInFlight(nodes[0].Endpoint(), 2)
			c, err := leastconntest.Dial(leastconntest.ChannelConfig{
				ServiceConfig: p.ServiceConfig(), Endpoints: []resolver.Endpoint{capped, nodes[1].Endpoint()},
			})
			if err != nil {
				return cell{err: err}
			}
			defer c.Close()
			if err := c.WaitServed(ctx, nodes...); err != nil {
				return cell{err: err}
			}
			got, err := openAll(ctx, c, 12)
			return cell{gave: got, err: err, off: got.differs(exact)}
		}, leastconntest.Options{Name: "a", ServerOptions: []grpc.ServerOption{grpc.MaxConcurrentStreams(2)}},
			leastconntest.Options{Name: "b"}),
	}
}

// newcomerRow is a server that joins busy ones and is not to get all at once.
func newcomerRow() row {
	exact := placed{counts: map[string]int{"a": 105, "b": 105, "c": 10}}
	return row{
		name: "cold newcomer", change: "c joins a and b, busy with 100 each; slowStart 10 s; 20 more in the first second",
		measure: "sessions by server, and those that hang", want: exact.String(), exact: exact,
		play: guarded(func(ctx context.Context, p trial.Policy, nodes []*leastconntest.Node) cell {
			if p.Name == "least_conn" {
				p.Config = `{"slowStart":{"window":"10s","minWeightPercent":10}}`
			}
			c, err := leastconntest.Dial(leastconntest.ChannelConfig{
				ServiceConfig: p.ServiceConfig(), Endpoints: leastconntest.Endpoints(nodes[:2]...),
			})
			if err != nil {
				return cell{err: err}
			}
			defer c.Close()
			if err := c.WaitServed(ctx, nodes[:2]...); err != nil {
				return cell{err: err}
			}
			streams, err := c.OpenN(ctx, 200)
			if err != nil {
				return cell{err: err}
			}
			if err := c.UpdateNodes(nodes...); err != nil {
				return cell{err: err}
			}
			if err := c.WaitServed(ctx, nodes[2]); err != nil {
				return cell{err: err}
			}
			more, err := c.OpenN(ctx, 20)
			if err != nil {
				return cell{err: err}
			}
			got := placed{counts: leastconntest.Counts(append(streams, more...))}
			return cell{gave: got, off: got.differs(exact)}
		}, leastconntest.Options{Name: "a"}, leastconntest.Options{Name: "b"}, leastconntest.Options{Name: "c"}),
	}
}

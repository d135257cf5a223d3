package main

import (
	"context"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// fullRow is a server that takes two streams per connection.
func fullRow() row {
	exact := counts{byServer: map[string]int{"a": 2, "b": 10}}
	return row{
		name: "full server", change: "a takes 2 streams at a time (MAX_CONCURRENT_STREAMS); 12 open at once",
		measure: "sessions by server, and those that hang", want: exact.String(), exact: exact,
		play: onNodes(func(ctx context.Context, e *env) (figures, []string, error) {
			if err := e.list(ctx, leastconntest.Endpoints(e.nodes...), e.nodes...); err != nil {
				return nil, nil, err
			}
			got, err := openAll(ctx, e.Channel, 12)
			return got, got.differs(exact), err
		}, nil, leastconntest.Options{Name: "a", ServerOptions: []grpc.ServerOption{grpc.MaxConcurrentStreams(2)}}, leastconntest.Options{Name: "b"}),
	}
}

// newcomerRow is a server that joins busy ones and is not to get all at once.
func newcomerRow() row {
	exact := counts{byServer: map[string]int{"a": 105, "b": 105, "c": 10}}
	return row{
		name: "cold newcomer", change: "c joins a and b, busy with 100 each; slowStart 10 min; 20 more in the first seconds",
		measure: "sessions by server, and those that hang", want: exact.String(), exact: exact,
		play: onNodes(func(ctx context.Context, e *env) (figures, []string, error) {
			busy := e.nodes[:2]
			if err := e.list(ctx, leastconntest.Endpoints(busy...), busy...); err != nil {
				return nil, nil, err
			}
			streams, err := e.OpenN(ctx, 200)
			if err != nil {
				return nil, nil, err
			}
			if err := e.list(ctx, leastconntest.Endpoints(e.nodes...), e.nodes[2]); err != nil {
				return nil, nil, err
			}
			more, err := e.OpenN(ctx, 20)
			got := counts{byServer: leastconntest.Counts(append(streams, more...))}
			return got, got.differs(exact), err
		}, slowStart, leastconntest.Options{Name: "a"}, leastconntest.Options{Name: "b"}, leastconntest.Options{Name: "c"}),
	}
}

// slowStart is least_conn's configuration with a slow start. Its window is so long that a newcomer's share stays at its
// least while the row is played.
func slowStart(p scenario.Policy) string {
	if p.Name != leastconnbalancer.Name {
		return p.Config
	}
	return `{"slowStart":{"window":"600s","minWeightPercent":10}}`
}

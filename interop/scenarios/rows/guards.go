package rows

import (
	"context"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// fullRow is a server that takes two streams per connection.
func fullRow() Row {
	exact := counts{byServer: map[string]int{"a": 2, "b": 10}}
	return Row{
		Name: "full server", Change: "a takes 2 streams at a time (MAX_CONCURRENT_STREAMS); 12 open at once",
		Measure: "sessions by server, and those that hang", Want: exact.String(), Exact: exact,
		Play: onNodes(func(ctx context.Context, e *env) (Figures, []string, error) {
			if err := e.list(ctx, leastconntest.Endpoints(e.nodes...), e.nodes...); err != nil {
				return nil, nil, err
			}
			got, err := openAll(ctx, e.Channel, 12, stuck)
			return got, got.differs(exact), err
		}, nil, leastconntest.Options{Name: "a", ServerOptions: []grpc.ServerOption{grpc.MaxConcurrentStreams(2)}}, leastconntest.Options{Name: "b"}),
	}
}

// newcomerRow is a server that joins busy ones and is not to get all at once.
func newcomerRow() Row {
	exact := counts{byServer: map[string]int{"a": 105, "b": 105, "c": 10}}
	return Row{
		Name: "cold newcomer", Change: "c joins a and b, busy with 100 each; slowStart 10 min; 20 more in the first seconds",
		Measure: "sessions by server, and those that hang", Want: exact.String(), Exact: exact,
		Play: onNodes(func(ctx context.Context, e *env) (Figures, []string, error) {
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

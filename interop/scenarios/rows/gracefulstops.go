package rows

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// stops are figures: how many of three servers could stop gracefully.
type stops struct{ returned int }

func (s stops) String() string { return fmt.Sprintf("%d of 3 stop", s.returned) }

// MarshalJSON gives the number.
func (s stops) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Stopped int `json:"stopped"`
	}{s.returned})
}

// gracefulRow is a rolling restart of servers that wait for their streams to end.
func gracefulRow() Row {
	exact := stops{3}
	return Row{
		Name: "moves: GracefulStop", Change: "a, b and c with 20 each stop gracefully and start again, in turn",
		Measure: "servers whose GracefulStop returns", Want: exact.String(), Exact: exact,
		Play: onMover(3, func(m *mover) (Figures, []string, error) {
			if err := m.openThen(60, m.plain("abc"), m.plain("abc")); err != nil {
				return nil, nil, err
			}
			var got stops
			for _, n := range m.nodes {
				stopped, err := m.stopGracefully(n)
				if err != nil {
					return nil, nil, err
				}
				if !stopped {
					return got, []string{fmt.Sprintf("%s waits for its streams", n.Name())}, nil
				}
				got.returned++
				if err := n.Restart(); err != nil {
					return nil, nil, err
				}
				// Its part of the sessions is back before the next one stops.
				if _, err := m.settle(map[string]int{"a": 20, "b": 20, "c": 20}); err != nil {
					return nil, nil, err
				}
			}
			return got, nil, nil
		}),
	}
}

// stopGracefully reports whether the node's GracefulStop returned in time. If it did not, its streams have been ended.
func (m *mover) stopGracefully(n *leastconntest.Node) (stopped bool, err error) {
	var stopping sync.WaitGroup
	defer stopping.Wait()
	ctx, returned := context.WithCancel(context.Background())
	stopping.Go(func() {
		n.GracefulStop()
		returned()
	})
	err = m.wait("GracefulStop to return", func() bool { return ctx.Err() != nil })
	if stopped = ctx.Err() != nil; !stopped {
		m.sessions.end()
	}
	return stopped, err
}

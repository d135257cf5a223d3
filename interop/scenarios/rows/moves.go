package rows

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// moves are figures: where sessions are in the end that move when they are told to, and how many were told.
type moves struct {
	counts
	told int
}

// MarshalJSON gives the counts by server.
func (m moves) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Sessions map[string]int `json:"sessions"`
		Moved    int            `json:"moved"`
	}{m.byServer, m.told})
}

// moveRows is the rows of sessions that move. They are played by programs that use leastconnbalancer.Run, which other
// policies never tell anything.
func moveRows() []Row {
	return []Row{
		moveRow("moves: join", "d joins a, b and c with 20 each", []int{15, 15, 15, 15}, 15, func(m *mover) error {
			return m.openThen(60, m.plain("abc"), m.plain("abcd"))
		}),
		moveRow("moves: weights", "a, b and c with 20 each get weights of 3, 1 and 1", []int{36, 12, 12}, 16, func(m *mover) error {
			weighted := m.plain("abc")
			weighted[0] = lcresolver.SetWeight(weighted[0], 3)
			return m.openThen(60, m.plain("abc"), weighted)
		}),
		moveRow("moves: drain", "c of a, b and c with 20 each gets weight 0, drainWithin 1 s", []int{30, 30, 0}, 20, func(m *mover) error {
			drained := m.plain("abc")
			drained[2] = lcresolver.SetWeight(drained[2], 0)
			return m.openThen(60, m.plain("abc"), drained)
		}),
		moveRow("moves: leaves", "c of a, b and c with 20 each leaves the list", []int{30, 30, 0}, 20, func(m *mover) error {
			return m.openThen(60, m.plain("abc"), m.plain("ab"))
		}),
		moveRow("moves: failover", "20 are on c, of priority 1; a and b, of priority 0, are back", []int{10, 10, 0}, 20, homeAfterFailover, movingLate),
		ageRow(), gracefulRow(), fleetRow(),
	}
}

// moving is least_conn's configuration for sessions of any age.
func moving(p scenario.Policy) string {
	if p.Name != leastconnbalancer.Name {
		return p.Config
	}
	return `{"rebalance":{"perSecond":50,"minAge":"0s","drainWithin":"1s"}}`
}

// movingLate is moving with the default of drainWithin: of two servers that are back, one that is ready much earlier than the
// other would be given more than its half.
func movingLate(p scenario.Policy) string {
	if p.Name != leastconnbalancer.Name {
		return p.Config
	}
	return `{"rebalance":{"perSecond":50,"minAge":"0s"}}`
}

// moveRow measures by where the sessions are once they have moved. The servers are a, b and so on.
func moveRow(name, change string, after []int, told int, do func(*mover) error, config ...func(scenario.Policy) string) Row {
	exact := moves{counts{byServer: map[string]int{}}, told}
	for i, n := range after {
		exact.byServer[slot(i)] = n
	}
	return Row{
		Name: name, Change: change, Measure: "sessions by server, and how many moved",
		Want: fmt.Sprintf("%s, %d move", exact, exact.told), Exact: exact,
		Play: onMover(len(after), func(m *mover) (Figures, []string, error) {
			if err := do(m); err != nil {
				return nil, nil, err
			}
			counted, err := m.settle(exact.byServer)
			got := moves{counted, m.sessions.told()}
			var deviations []string
			if !maps.Equal(got.byServer, exact.byServer) || got.told != told {
				deviations = append(deviations, fmt.Sprintf("servers hold %s and %d were told to move, exact gives %s and %d", got, got.told, exact, told))
			}
			return got, deviations, err
		}, config...),
	}
}

func slot(i int) string { return string(rune('a' + i)) }

// mover is what a row with sessions that move is played in.
type mover struct {
	*env
	ctx      context.Context
	patience time.Duration
	sessions *movableSessions
}

// unmoved is how long sessions are watched with policies that move none.
const unmoved = time.Second

// onMover plays a row with so many servers. A config takes the place of moving.
func onMover(servers int, play func(*mover) (Figures, []string, error), config ...func(scenario.Policy) string) func(context.Context, scenario.Policy) Cell {
	var opts []leastconntest.Options
	for i := range servers {
		opts = append(opts, leastconntest.Options{Name: slot(i)})
	}
	return func(ctx context.Context, p scenario.Policy) Cell {
		return onNodes(func(ctx context.Context, e *env) (Figures, []string, error) {
			m := &mover{env: e, ctx: ctx, patience: unmoved, sessions: newMovableSessions(ctx)}
			if p.Judged {
				m.patience = Timeout
			}
			defer m.sessions.end()
			got, deviations, err := play(m)
			if err == nil {
				err = m.sessions.broken()
			}
			return got, deviations, err
		}, append(config, moving)[0], opts...)(ctx, p)
	}
}

// plain lists the nodes at slots.
func (m *mover) plain(slots string) (endpoints []resolver.Endpoint) {
	for _, s := range slots {
		endpoints = append(endpoints, m.nodes[s-'a'].Endpoint())
	}
	return endpoints
}

// openThen opens sessions over the first list, of nodes from a on, and then sends the second one.
func (m *mover) openThen(n int, first, then []resolver.Endpoint) error {
	if err := m.list(m.ctx, first, m.nodes[:len(first)]...); err != nil {
		return err
	}
	if err := m.sessions.open(m.Channel, n); err != nil {
		return err
	}
	return m.Update(then...)
}

func homeAfterFailover(m *mover) error {
	home := m.nodes[:2]
	for _, n := range home {
		n.Stop()
	}
	list := m.plain("abc")
	list[2] = lcresolver.SetPriority(list[2], 1)
	if err := m.list(m.ctx, list, m.nodes[2]); err != nil {
		return err
	}
	if err := m.sessions.open(m.Channel, 20); err != nil {
		return err
	}
	for _, n := range home {
		if err := n.Restart(); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the nodes have as many sessions as they should, or for as long as it is worth, and returns how many
// they have.
func (m *mover) settle(want map[string]int) (counts, error) {
	var got counts
	err := m.wait("the sessions to have moved", func() bool {
		got = counts{byServer: map[string]int{}}
		for _, n := range m.nodes {
			got.byServer[n.Name()] = n.HeldStreams()
		}
		return maps.Equal(want, got.byServer)
	})
	return got, err
}

// wait waits for a condition, which may never come true with a policy that moves nothing.
func (m *mover) wait(what string, condition func() bool) error {
	ctx, cancel := context.WithTimeout(m.ctx, m.patience)
	defer cancel()
	_ = leastconntest.WaitFor(ctx, what, condition) // whether it did is seen from what is measured
	return m.ctx.Err()
}

// ageRow is servers that send GOAWAYs, as they do to connections of some age, and stay.
func ageRow() Row {
	exact := connections{map[string]int{"a": 1, "b": 1, "c": 1}}
	return Row{
		Name: "moves: GOAWAY", Change: "a, b and c with 20 each replace their connections in turn",
		Measure: "connections by server", Want: exact.String(), Exact: exact,
		Play: onMover(3, func(m *mover) (Figures, []string, error) {
			if err := m.openThen(60, m.plain("abc"), m.plain("abc")); err != nil {
				return nil, nil, err
			}
			got := connections{map[string]int{}}
			for _, n := range m.nodes {
				before := n.Conns()
				n.GoAway()
				err := m.wait("the old connection to close", func() bool { return n.Conns() > before && n.OpenConns() == 1 })
				if err != nil {
					return nil, nil, err
				}
				got.byServer[n.Name()] = n.OpenConns()
			}
			if maps.Equal(got.byServer, exact.byServer) {
				return got, nil, nil
			}
			return got, []string{fmt.Sprintf("servers have %s, exact gives %s", got, exact)}, nil
		}),
	}
}

// connections are figures: how many each server has.
type connections struct{ byServer map[string]int }

func (c connections) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.byServer)) {
		all = append(all, fmt.Sprint(c.byServer[name]))
	}
	return strings.Join(all, "/") + " conns"
}

// MarshalJSON gives the connections by server.
func (c connections) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Connections map[string]int `json:"connections"`
	}{c.byServer})
}

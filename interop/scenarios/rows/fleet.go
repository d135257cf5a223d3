package rows

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// newcomers are figures: how many sessions of a fleet the server has that joined.
type newcomers struct{ got int }

func (n newcomers) String() string { return fmt.Sprintf("%d of %d", n.got, fleetClients) }

// MarshalJSON gives the number.
func (n newcomers) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		OnNewServer int `json:"onNewServer"`
	}{n.got})
}

// fleetClients is how many clients the fleet has. Each draws with a chance of a quarter, so the new server has a quarter of
// them, give or take 22: more than five standard deviations, and beyond it once in a million plays.
const (
	fleetClients = 100
	fleetLeast   = fleetClients/4 - 22
	fleetMost    = fleetClients/4 + 22
)

// fleetRests is longer than it takes, as a rule, until the next of the fleet's sessions moves.
const fleetRests = 3 * time.Second

// fleetRow is many clients with one session each, none of which knows of the others.
func fleetRow() Row {
	exact := newcomers{fleetClients / 4}
	return Row{
		Name: "moves: fleet", Change: fmt.Sprintf("d joins a, b and c; %d clients have one session each", fleetClients),
		Measure: "sessions on the new server", Want: fmt.Sprintf("%s ± %d", exact, fleetMost-fleetClients/4), Exact: exact, Bounded: true,
		Play: func(ctx context.Context, p scenario.Policy) Cell {
			return onMover(4, func(m *mover) (Figures, []string, error) { return m.playFleet(p) })(ctx, p)
		},
	}
}

func (m *mover) playFleet(p scenario.Policy) (Figures, []string, error) {
	p.Config = moving(p)
	var clients []*leastconntest.Channel
	defer func() {
		m.sessions.end()
		for _, c := range clients {
			c.Close()
		}
	}()
	for range fleetClients {
		c, err := p.Dial(leastconntest.ChannelConfig{Endpoints: m.plain("abc")})
		if err != nil {
			return nil, nil, err
		}
		clients = append(clients, c)
		if err := m.sessions.open(c, 1); err != nil {
			return nil, nil, err
		}
	}
	begun := time.Now()
	for _, c := range clients {
		if err := c.Update(m.plain("abcd")...); err != nil {
			return nil, nil, err
		}
	}
	var got newcomers
	changed := time.Now()
	rests := fleetRests + changed.Sub(begun) // who was told first moves first
	err := m.wait("sessions to have moved to d", func() bool {
		if n := m.nodes[3].HeldStreams(); n != got.got {
			got, changed = newcomers{n}, time.Now()
		}
		return got.got > 0 && time.Since(changed) > rests
	})
	if err != nil {
		return nil, nil, err
	}
	if got.got < fleetLeast || got.got > fleetMost {
		return got, []string{fmt.Sprintf("the new server has %d, want %d to %d", got.got, fleetLeast, fleetMost)}, nil
	}
	return got, nil, nil
}

package rows

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/interop/internal/scenario"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/leastconnbalancer/orcaload" // what servers report
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/serverload"
	"github.com/leastconn/grpc-leastconn/state"
)

// variation is figures: the coefficient of variation of what servers hold, their standard deviation over the mean.
type variation float64

func (v variation) String() string { return fmt.Sprintf("cv %.2f", float64(v)) }

// MarshalJSON gives the number.
func (v variation) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		CV float64 `json:"cv"`
	}{float64(v)})
}

// The fleet of the row. Were each of its sessions on a random server, cv would be 0.47.
const (
	fewServers = 10
	fewClients = 20
	fewEach    = 2
	fewMost    = variation(0.25)
)

// fewRow is a fleet whose clients have so few sessions each that a client's own counts say little. Interop/fleet shows one
// of processes, over time.
func fewRow() Row {
	return Row{
		Name: "fleet: few each", Change: fmt.Sprintf("%d clients that share nothing open %d each on %d servers that report", fewClients, fewEach, fewServers),
		Measure: "coefficient of variation of sessions by server", Want: fmt.Sprintf("at most %s", fewMost), Exact: variation(0), Bounded: true,
		Waits: true, Play: playFew,
	}
}

// fewFleet is a play of the row.
type fewFleet struct {
	nodes    []*leastconntest.Node
	channels []*leastconntest.Channel
	sessions [][]*leastconntest.Stream // by channel
}

func playFew(ctx context.Context, p scenario.Policy) Cell {
	f := &fewFleet{}
	defer f.close()
	if err := f.start(p); err != nil {
		return Cell{Err: err}
	}
	for round := range fewEach + 1 {
		for i := range f.channels {
			if err := f.next(ctx, i, round == fewEach); err != nil {
				return Cell{Err: err}
			}
		}
	}
	got, c := f.variation(), Cell{}
	if c.Got = got; got > fewMost {
		c.Deviations = []string{fmt.Sprintf("%s, want at most %s", got, fewMost)}
	}
	return c
}

// start starts servers that report, and channels with ledgers of their own.
func (f *fewFleet) start(p scenario.Policy) error {
	if p.Name == leastconnbalancer.Name {
		p.Config = `{"reports":{"interval":"0.3s"}}`
	}
	for i := range fewServers {
		load := serverload.New(serverload.Options{})
		var registered error
		n, err := leastconntest.StartNode(leastconntest.Options{
			Name:          slot(i),
			ServerOptions: []grpc.ServerOption{grpc.StatsHandler(load)},
			Register:      func(r grpc.ServiceRegistrar) { registered = load.Register(r) },
		})
		if err != nil {
			return err
		}
		if f.nodes = append(f.nodes, n); registered != nil {
			return registered
		}
	}
	for range fewClients {
		c, err := p.Dial(leastconntest.ChannelConfig{Endpoints: leastconntest.Endpoints(f.nodes...)})
		if err != nil {
			return err
		}
		f.channels = append(f.channels, c)
		f.sessions = append(f.sessions, nil)
		c.Connect()
	}
	return nil
}

// next has a client open a session, maybe in place of its oldest one.
func (f *fewFleet) next(ctx context.Context, client int, instead bool) error {
	c, held := f.channels[client], f.sessions[client]
	if instead {
		if err := held[0].End(); err != nil {
			return err
		}
		held = held[1:]
	}
	if err := leastconntest.WaitFor(ctx, "what servers report", func() bool { return f.told(c.Key()) }); err != nil {
		return err
	}
	s, err := c.Open(ctx)
	if err == nil {
		f.sessions[client] = append(held, s)
	}
	return err
}

// told reports whether the ledger of a client, if it has one, knows what all servers hold. Reports tell that, within their
// interval.
func (f *fewFleet) told(key string) bool {
	for _, l := range state.Ledgers() {
		if l.Key() != key {
			continue
		}
		s := l.Snapshot() // the others are none of its business, and they are many
		for _, n := range f.nodes {
			known := false
			for _, e := range s.Endpoints {
				for _, m := range e.Members {
					known = known || e.Addresses[0] == n.Addr() && m.Report.Told && m.Report.Others+e.InFlight == int64(n.HeldStreams())
				}
			}
			if !known {
				return false
			}
		}
	}
	return true
}

func (f *fewFleet) variation() variation {
	const mean = float64(fewClients*fewEach) / fewServers
	sum := 0.0
	for _, n := range f.nodes {
		d := float64(n.HeldStreams()) - mean
		sum += d * d
	}
	return variation(math.Sqrt(sum/fewServers) / mean)
}

func (f *fewFleet) close() {
	for _, c := range f.channels {
		c.Close()
	}
	leastconntest.CloseNodes(f.nodes...)
}

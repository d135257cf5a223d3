package statetest

import (
	"context"
	"time"

	"github.com/leastconn/grpc-leastconn/state"
)

// sessionCost is what RPCs of a session cost. A stream that moves takes it along, unless
// its next RPC has one of its own.
type sessionCost struct {
	cost  *state.Cost
	units int64
	setAt time.Duration
}

// now returns the units. c may be nil.
func (c *sessionCost) now() int64 {
	if c == nil {
		return 1
	}
	return c.units
}

// withCost may give the RPC a cost.
func (s *sessionScript) withCost(ctx context.Context, rpc *sessionRPC) context.Context {
	units := int64(of(s.script, costs))
	if units == 0 {
		return ctx
	}
	ctx = state.WithCost(ctx, units)
	rpc.cost = &sessionCost{cost: state.CostOf(ctx), units: units, setAt: never}
	return ctx
}

// setCost changes what an RPC costs, if it has not been changed so lately that it would
// take effect later.
func (s *sessionScript) setCost(*sessionSet) error {
	if len(s.rpcs) == 0 {
		return nil
	}
	if c := of(s.script, s.rpcs).cost; c != nil && s.now-c.setAt > costPeriod+state.Tick {
		c.units, c.setAt = int64(max(1, of(s.script, costs))), s.now
		c.cost.Set(c.units)
	}
	return nil
}

// largest returns what the costliest RPC costs. It is not sure while a place may be kept
// for one that costs more.
func (s *sessionScript) largest() (units float64, sure bool) {
	most, kept := int64(1), int64(1)
	for _, rpc := range s.rpcs {
		most = max(most, rpc.cost.now())
	}
	for _, mv := range s.moves {
		kept = max(kept, mv.cost.now())
	}
	return float64(most), kept <= most
}

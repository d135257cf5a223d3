package leastconnbalancer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leastconn/grpc-leastconn/state"
)

// MaxCost is the most units that an RPC may cost.
const MaxCost = state.MaxCost

// WithCost returns a context whose RPC counts units, instead of 1, in the score of its
// endpoint: what it asks of the server, such as LLM tokens, bytes or rows. An RPC without
// it counts 1. Units are from 1 to [MaxCost]. A number below or above is taken as the
// nearest of these, since no call should fail by an estimate, and the log warns once of each.
//
// RPCs go where the fewest units are in flight for each unit of weight; what the RPC
// itself costs does not change where it goes. So endpoints are level within the largest
// cost, once more than that has come. The units are given back, once, when the RPC ends,
// and stay for failurePenalty where it has failed. Caps do not know them: maxInFlight,
// servers' limits of streams and the queue count RPCs.
//
// The cost is of the first RPC that is made with the context, or with one derived from it,
// and of that RPC's retries. Others, at the same time or later, count 1: make a context for
// each call. A stream of a [Session] that moves takes its units along: with the same
// context, and with one that has no cost. One with a cost of its own counts that.
//
// Retries by an interceptor of the program are those of one RPC if
// [UnaryClientInterceptor] or [StreamClientInterceptor] is outside of it.
//
// WithCost is safe for concurrent use, and a context that no RPC is made with does no harm.
func WithCost(ctx context.Context, units int) context.Context {
	allowed := min(max(units, 1), MaxCost)
	if allowed != units {
		warnOfCost(units, allowed)
	}
	return state.WithCost(ctx, int64(allowed))
}

// SetCost changes what the RPC counts that has its cost by [WithCost], as when its tokens
// become known: ctx is what WithCost has returned, or derived from that. Units are from 1
// to [MaxCost], all of the RPC's and not what is added.
//
// At most ten changes per second take effect: the first at once, and of those that follow within
// 0.1 s the last one, then. So SetCost may be called for each token. Before the RPC is given an endpoint, and between its
// attempts, it says what the RPC will count; after its end it has no effect, and is no error.
//
// It returns an error, and changes nothing, when units are not allowed or ctx has no cost.
// It is safe for concurrent use, and does not block.
func SetCost(ctx context.Context, units int) error {
	if units < 1 || units > MaxCost {
		return fmt.Errorf("%s: SetCost: units %d: want 1 to %d", Name, units, MaxCost)
	}
	c := state.CostOf(ctx)
	if c == nil {
		return errNoCost
	}
	c.Set(int64(units))
	return nil
}

var errNoCost = errors.New(Name + ": SetCost: the context has no cost: want one of WithCost, or derived from it")

var tooLow, tooHigh sync.Once

// warnOfCost warns once of costs that are too low, and once of those that are too high.
func warnOfCost(units, allowed int) {
	once := &tooLow
	if units > allowed {
		once = &tooHigh
	}
	once.Do(func() {
		logger.Warningf("WithCost: units %d: want 1 to %d; RPCs with such costs count %d", units, MaxCost, allowed)
	})
}

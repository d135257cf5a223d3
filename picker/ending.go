package picker

import (
	"context"
	"weak"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/state"
)

// Unserved wraps the picker of a balancer that has no endpoint to give to RPCs, which
// they wait for or fail with. One whose attempt it ends waits for room no more. set is
// the balancer's endpoint set, nil when it has none.
func Unserved(p balancer.Picker, set *state.EndpointSet) balancer.Picker {
	return unserved{p, weak.Make(set)}
}

type unserved struct {
	balancer.Picker
	set weak.Pointer[state.EndpointSet] // gRPC may keep the picker for long
}

func (p unserved) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	explicitRecord(info.Ctx).note(false)
	res, err := p.Picker.Pick(info)
	endAttempt(info.Ctx, err, p.set.Value())
	return res, err
}

// endAttempt ends what waits for an attempt that a pick ends with err. A status ends
// the attempts of all RPCs. Any other error leaves those that wait for readiness, and
// nobody tells which these are: they keep their places, but are passed over until they
// pick again.
func endAttempt(ctx context.Context, err error, asked *state.EndpointSet) {
	if err == nil || err == balancer.ErrNoSubConnAvailable {
		return
	}
	if _, ok := status.FromError(err); ok {
		state.StopWaiting(ctx)
	} else {
		state.PauseWaiting(ctx, asked)
	}
}

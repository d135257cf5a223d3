package picker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leastconn/grpc-leastconn/picker"
	"github.com/leastconn/grpc-leastconn/state"
)

// endings are ends of attempts, and whether they blame the endpoint.
func endings() map[string]struct {
	info   balancer.DoneInfo
	blames bool
} {
	type ending = struct {
		info   balancer.DoneInfo
		blames bool
	}
	ends := map[string]ending{
		"success":             {balancer.DoneInfo{BytesSent: true, BytesReceived: true}, false},
		"hidden error":        {balancer.DoneInfo{BytesSent: true}, false},
		"zero":                {balancer.DoneInfo{}, false},
		"no status":           {sent(errors.New("broken")), true},
		"wrapped status":      {sent(fmt.Errorf("call: %w", status.Error(codes.DataLoss, ""))), true},
		"cancel":              {sent(context.Canceled), false},
		"wrapped deadline":    {sent(fmt.Errorf("call: %w", context.DeadlineExceeded)), false},
		"not sent":            {balancer.DoneInfo{Err: status.Error(codes.Unavailable, "")}, false},
		"not sent, no status": {balancer.DoneInfo{Err: errors.New("no stream")}, false},
	}
	for _, text := range []string{"grpc: error while marshaling: x", "grpc: error while compressing: x"} {
		ends[text] = ending{sent(status.Error(codes.Internal, text)), false}
		ends[text+", answered"] = ending{answered(codes.Internal, text), true}
	}
	for _, text := range []string{"trying to send message larger than max (2 vs. 1)", "grpc: received message larger than max (2 vs. 1)"} {
		ends[text] = ending{sent(status.Error(codes.ResourceExhausted, text)), false}
		ends[text+", answered"] = ending{answered(codes.ResourceExhausted, text), false}
	}
	ends["reset"] = ending{sent(status.Error(codes.ResourceExhausted, "stream terminated by RST_STREAM with error code: ENHANCE_YOUR_CALM")), true}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		switch code {
		case codes.Unavailable, codes.Internal, codes.Unknown, codes.DataLoss:
			ends[code.String()] = ending{sent(status.Error(code, "")), true}
			ends[code.String()+", answered"] = ending{answered(code, ""), true}
		case codes.ResourceExhausted:
			ends[code.String()] = ending{sent(status.Error(code, "")), false}
			ends[code.String()+", answered"] = ending{answered(code, ""), true}
		default:
			ends[code.String()] = ending{sent(status.Error(code, "")), false}
		}
	}
	return ends
}

// answered is the end of an attempt that a server has ended.
func answered(code codes.Code, text string) balancer.DoneInfo {
	return balancer.DoneInfo{Err: status.Error(code, text), BytesSent: true, BytesReceived: true}
}

// sent is the end of an attempt that reached a server.
func sent(err error) balancer.DoneInfo { return balancer.DoneInfo{Err: err, BytesSent: true} }

// An end that blames the endpoint leaves a penalty there, whether the child wants to
// hear of it or not; any end gives the lease back.
func TestEndsThatBlameTheEndpoint(t *testing.T) {
	var heard []balancer.DoneInfo
	for name, c := range map[string]*child{
		"child without a Done": {},
		"child with a Done":    {res: balancer.PickResult{Done: func(info balancer.DoneInfo) { heard = append(heard, info) }}},
	} {
		for end, want := range endings() {
			t.Run(name+", "+end, func(t *testing.T) {
				v, l := readySetWith(t, state.Guards{FailurePenalty: time.Hour}, 0, c, c)
				res, err := picker.New(v).Pick(balancer.PickInfo{Ctx: t.Context()})
				require.NoError(t, err)
				heard = nil
				res.Done(want.info)
				res.Done(want.info)
				penalty := int64(0)
				for _, n := range l.Snapshot().Endpoints {
					penalty += n.Penalty
				}
				require.Equal(t, want.blames, penalty == 1, "penalty %d", penalty)
				require.Zero(t, l.Snapshot().InFlight)
				require.NoError(t, l.Check())
				if c.res.Done != nil {
					require.Equal(t, []balancer.DoneInfo{want.info}, heard)
				}
			})
		}
	}
}

// An endpoint that fails at once is chosen as if its RPCs lasted.
func TestBlamedEndpointIsPassedOver(t *testing.T) {
	bad, good := &child{res: balancer.PickResult{SubConn: &subConn{}}}, &child{res: balancer.PickResult{SubConn: &subConn{}}}
	v, _ := readySetWith(t, state.Guards{FailurePenalty: time.Hour}, 0, bad, good)
	p := picker.New(v)
	failed := 0
	for range 10 { // of which each stays in flight, in truth or as a penalty
		ctx, cancel := context.WithCancel(t.Context())
		res, err := p.Pick(balancer.PickInfo{Ctx: ctx})
		require.NoError(t, err)
		if res.SubConn == bad.res.SubConn {
			failed++
			res.Done(sent(status.Error(codes.Unavailable, "at once")))
		} else {
			t.Cleanup(func() { res.Done(balancer.DoneInfo{}) })
		}
		cancel()
	}
	require.Equal(t, 5, failed)
}

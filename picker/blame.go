package picker

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// blames reports whether a server that works would not have ended an attempt so. What
// the caller does (cancel, deadline), what keeps this side from sending or taking a
// message, and what an application says of a request is no failure of the endpoint.
func blames(info balancer.DoneInfo) bool {
	if info.Err == nil || !info.BytesSent || errors.Is(info.Err, context.Canceled) || errors.Is(info.Err, context.DeadlineExceeded) {
		return false
	}
	st := status.Convert(info.Err)
	switch st.Code() {
	case codes.Unavailable, codes.Unknown, codes.DataLoss:
		return true
	case codes.Internal:
		return info.BytesReceived || !textIsOf(unwritten, st)
	case codes.ResourceExhausted:
		if info.BytesReceived {
			return !textIsOf(limits, st)
		}
		return textIsOf(resets, st)
	}
	return false
}

// The texts by which grpc-go alone tells ends of one code apart, from their beginnings
// on; a test has it make them.
var (
	// unwritten are of messages that the codec or the compressor cannot write. A server
	// that cannot write a response says the same, but then something was received.
	unwritten = []string{"grpc: error while marshaling", "grpc: error while compressing"}
	// limits are of messages over a limit of this side, or over the server's for
	// requests, which is as little its fault.
	limits = []string{"trying to send message larger than max", "grpc: received message larger than max", "grpc: message too large"}
	// resets are of streams that the server has reset: any other RESOURCE_EXHAUSTED that
	// comes before anything was received is this side's.
	resets = []string{"stream terminated by RST_STREAM"}
)

func textIsOf(texts []string, st *status.Status) bool {
	for _, t := range texts {
		if strings.HasPrefix(st.Message(), t) {
			return true
		}
	}
	return false
}

package debugpage

import (
	"fmt"
	"strings"

	"github.com/leastconn/grpc-leastconn/state"
)

const (
	maxReasons  = 3   // channels that say why, for each endpoint
	recentError = 600 // s: for so long the last error of an endpoint that is ready again is shown
)

// why says why the endpoint is not ready, drains or has left, since when, and what has
// failed there of late. With several channels each speaks for itself.
func why(ep state.EndpointSnapshot) (reasons []string) {
	if ep.State == state.EndpointDeparted {
		return []string{fmt.Sprintf("left the list %s ago, with %d in flight still", ago(ep.StateSeconds), ep.InFlight)}
	}
	more := 0
	for _, m := range ep.Members {
		reason := reasonOf(m, ep.Drained)
		switch {
		case reason == "":
			continue
		case len(reasons) == maxReasons:
			more++
			continue
		case len(ep.Members) > 1 && m.EndpointSet != "":
			reason = channel(m.EndpointSet, m.Cluster, m.Locality) + ": " + reason
		}
		reasons = append(reasons, reason)
	}
	if more > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more channels", more))
	}
	return reasons
}

// reasonOf is why of one channel; "" when the endpoint is ready there. drained is by Drain.
func reasonOf(m state.MemberSnapshot, drained bool) string {
	c, since := m.Connectivity, ago(m.SinceSeconds)
	lastError, cause := "", ""
	if c.LastError != "" {
		lastError = fmt.Sprintf("; last error %s ago: %s", ago(c.LastErrorSeconds), c.LastError)
		cause = fmt.Sprintf(": %s (%s ago)", c.LastError, ago(c.LastErrorSeconds))
	}
	switch {
	case m.Draining && drained:
		return "drained for " + since + " by Drain, whatever its weight: RPCs live on and new ones go elsewhere"
	case m.Draining:
		return "draining for " + since + ": its weight is 0, so RPCs live on and new ones go elsewhere"
	case m.Ready && (c.LastError == "" || c.LastErrorSeconds > recentError):
		return ""
	case m.Ready:
		return strings.TrimPrefix(lastError, "; ")
	case c.State == "":
		return "not ready for " + since
	case c.State == "TRANSIENT_FAILURE" && m.Connection.AgeSeconds > 0:
		return "not healthy for " + ago(c.SinceSeconds) + cause
	case c.State == "TRANSIENT_FAILURE":
		return "no connection for " + since + cause
	case m.Connection.AgeSeconds > 0:
		return "connected, and its health check has not answered for " + ago(m.Connection.AgeSeconds) + lastError
	case c.State == "IDLE":
		return "idle for " + ago(c.SinceSeconds) + ": it has no connection, and has not begun another" + lastError
	}
	return strings.ToLower(c.State) + " for " + ago(c.SinceSeconds) + lastError
}

// channel names an endpoint set: a channel's target, and below xDS, where a channel has several, what
// tells them apart.
func channel(target, cluster, locality string) string {
	name := target
	if cluster != "" {
		name += " cluster " + cluster
	}
	if locality != "" {
		name += " " + locality
	}
	return name
}

func channelOf(r state.EndpointSetSnapshot) string { return channel(r.Name, r.Cluster, r.Locality) }

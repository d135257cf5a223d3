package leastconnbalancer

import "github.com/leastconn/grpc-leastconn/state"

// What [Snapshots] returns. The fields and their JSON names are stable: names
// keep their meaning, and new ones may come.
type (
	// Snapshot is the load of one resource key at one moment.
	Snapshot = state.Snapshot
	// EndpointSnapshot is one endpoint, with its RPCs in flight.
	EndpointSnapshot = state.EndpointSnapshot
	// MemberSnapshot is an endpoint as one channel lists it.
	MemberSnapshot = state.MemberSnapshot
	// ConnectivitySnapshot is the state of a channel's connection to an endpoint, since when
	// it is so, and the last connection error.
	ConnectivitySnapshot = state.ConnectivitySnapshot
	// EndpointSetSnapshot is one channel: its canonical target, its counters.
	EndpointSetSnapshot = state.EndpointSetSnapshot
	// FleetSnapshot is what servers say of the endpoints, where the configuration has
	// reports.
	FleetSnapshot = state.FleetSnapshot
	// ReportSnapshot is what one server says, as one channel has heard it.
	ReportSnapshot = state.ReportSnapshot
	// Counters are what a channel has done since its balancer began to use the
	// resource key.
	Counters = state.Counters
	// EndpointState is the best that a channel says of an endpoint.
	EndpointState = state.EndpointState
)

// The states of an endpoint.
const (
	EndpointReady    = state.EndpointReady    // it may be chosen, its cap apart
	EndpointDraining = state.EndpointDraining // it is ready with weight 0, or drained by [Drain]: RPCs live on, new ones go elsewhere
	EndpointNotReady = state.EndpointNotReady // it is listed and has no connection
	EndpointDeparted = state.EndpointDeparted // no channel lists it, RPCs are in flight
)

// Snapshots returns the load that the process has now, by resource key: for logs,
// health pages, autoscalers and tests. It shows the channels that use the policy
// and the RPCs that are in flight still of those that did.
//
// The snapshots are the caller's. They are those of one moment each, not all of
// the same. While one is taken no RPC of its resource key is sent, for about half a
// microsecond for each endpoint and channel that lists it: once a second is fine, once
// for each RPC is not. Metrics and the debug page do not make RPCs wait so.
func Snapshots() []Snapshot { return state.Snapshots() }

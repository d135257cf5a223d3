package state

import (
	"time"

	"github.com/leastconn/grpc-leastconn/state/internal/order"
)

// MemberSnapshot is an endpoint as one endpoint set lists it.
type MemberSnapshot struct {
	EndpointSet     string             `json:"endpointSet"`
	Locality        string             `json:"locality,omitempty"` // of the endpoint set
	Cluster         string             `json:"cluster,omitempty"`  // likewise
	Ready           bool               `json:"ready"`              // it is in a ready set, and what follows is the ready set's
	Priority        uint32             `json:"priority"`           // 0 is the highest
	Weight          uint32             `json:"weight"`             // the resolver's; 0 while ready: draining
	EffectiveWeight float64            `json:"effectiveWeight"`    // weight × slowStartFactor, or one next to nothing away
	Score           float64            `json:"score"`              // (units + penalty + phase) / effectiveWeight; 0 unless it may be chosen
	Next            bool               `json:"next,omitempty"`     // the next pick of the ready set is its, unless a report makes it another's
	Draining        bool               `json:"draining,omitempty"` // ready, and not chosen
	MaxInFlight     int64              `json:"maxInFlight"`        // 0: no cap
	Full            bool               `json:"full,omitempty"`     // without room: at its cap or at the server's limit, penalties included
	Connection      ConnectionSnapshot `json:"connection"`
	SlowStartFactor float64            `json:"slowStartFactor"` // of its weight: below 1 while it starts slowly
	Report          ReportSnapshot     `json:"report,omitzero"`

	SinceSeconds float64              `json:"sinceSeconds"` // how long it is ready, or drains, or is not ready
	Connectivity ConnectivitySnapshot `json:"connectivity,omitzero"`
}

// ConnectionSnapshot is a member's connection, or its last one.
type ConnectionSnapshot struct {
	InFlight int64 `json:"inFlight"`         // leases that have it
	Limit    int64 `json:"limit"`            // the server's, of streams; -1: none
	Others   int64 `json:"others,omitempty"` // other streams that take room
	Full     bool  `json:"full,omitempty"`   // the server takes no more

	Number     uint64  `json:"number,omitempty"`     // of the member's connections, from 1; 0 before any
	AgeSeconds float64 `json:"ageSeconds,omitempty"` // since the connection is up; 0 once it is not
}

func (m *Member) snapshot(now time.Time) MemberSnapshot {
	is := m.set.labels.Value()
	s := MemberSnapshot{EndpointSet: is.Target, Locality: is.Locality, Cluster: is.Cluster, SlowStartFactor: m.slowStart.factor}
	s.SinceSeconds = (now.Sub(m.set.ledger.clock.epoch) - m.since).Seconds()
	s.Connectivity = m.connectivity.snapshot(now)
	if m.limit != noLimit {
		s.MaxInFlight = m.limit
	}
	s.Connection = m.connection.snapshot(now)
	if m.readySet == nil {
		return s
	}
	s.Ready, s.Priority, s.Weight = true, m.readySet.priority, m.weight
	s.Draining, s.Full = m.draining(), m.full
	s.Report = m.reportSnapshot()
	if h := m.anyHandle(); h != order.None {
		s.EffectiveWeight = m.readySet.order.ClassWeight(h)
	}
	if o, h := m.place(); o != nil {
		s.Score = o.Score(h)
		v := m.readySet
		s.Next = o.First() == h && (o == &v.order || v.order.Len()+v.busy == 0)
	}
	return s
}

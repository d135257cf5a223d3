package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// conn is a connection of a channel to a server, known by its address on the channel's side.
type conn struct {
	listing listing
	local   string
}

// conn returns the channel's connection between two addresses.
func (h *handler) conn(remote, local net.Addr) conn {
	return conn{listing{h.channel.location(remote.String()), h.channel.target()}, local.String()}
}

type connKey struct{}

// TagConn implements stats.Handler.
func (h *handler) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connKey{}, h.conn(info.RemoteAddr, info.LocalAddr))
}

// HandleConn implements stats.Handler.
func (h *handler) HandleConn(ctx context.Context, s stats.ConnStats) {
	c := ctx.Value(connKey{}).(conn)
	a := h.attempts
	a.mu.Lock()
	defer a.mu.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		a.conns[c] = true
	case *stats.ConnEnd:
		delete(a.conns, c)
	}
}

// room is what the policy knows of the room on a channel's connection to a server. Neither caps nor faults have a part in
// it.
type room struct {
	limit       int64 // of streams, the server's
	inFlight    int64 // RPCs that the ledger has there
	others      int64 // other streams that it knows of: RPCs that another ledger has there, and what follows
	least, most int64 // streams of health checks and reports that there may be
	earlier     int64 // RPCs of the endpoint that count on connections before, of any channel
	full        bool
}

// noteRoom reads the snapshots for it. Places that are kept for sessions take room, and are no streams yet.
func (b reconciliation) noteRoom(s *env) {
	members := map[listing]leastconnbalancer.MemberSnapshot{}
	earlier := map[location]int64{}
	for _, snapshot := range b.snapshots {
		for _, n := range snapshot.Endpoints {
			at := s.fleet.locationOf(snapshot, n)
			earlier[at] = n.InFlight
			for _, m := range n.Members {
				earlier[at] -= m.Connection.InFlight
				if m.Ready && m.MaxInFlight == 0 && n.Arriving == 0 {
					members[listing{at, m.EndpointSet}] = m
				}
			}
		}
	}
	for _, c := range s.channels {
		for _, m := range c.members() {
			server := m.current()
			l := listing{c.location(server.addr), c.target()}
			if m, ok := members[l]; ok {
				r := room{limit: c.spec.streamLimit(server), inFlight: m.Connection.InFlight, others: m.Connection.Others,
					earlier: earlier[l.location], full: m.Connection.Full}
				if c.spec.health {
					r.least, r.most = 1, 1
				}
				if c.spec.policy.Reports != nil {
					r.most++ // unless another channel of the key listens, or the server does not report
				}
				b.room[l] = r
			}
		}
	}
}

// streamLimit is how many streams the policy may have on a connection to the server.
func (s channelSpec) streamLimit(to *server) int64 {
	if s.policy.StreamLimit == leastconnbalancer.StreamLimitIgnore {
		return noStreamsLimit
	}
	return int64(to.streamLimit)
}

// checkRoom says where room is kept for more or fewer streams than there may be, and where a server is taken for full and
// has room, or has none and is not taken for full. Where there are several connections, some of them old, it is not known
// from here which one is in use. An RPC that was picked for a connection, and gets its stream when there is the next one,
// counts on the one before: gRPC does not tell.
func (b reconciliation) checkRoom() (errs []error) {
	most, conns := map[listing]int64{}, map[listing]int{}
	for c, n := range b.streams {
		most[c.listing] = max(most[c.listing], int64(n))
		conns[c.listing]++
	}
	for l, r := range b.room {
		rpcs, others := most[l], r.most
		if conns[l] == 1 {
			if others = r.inFlight + r.others - rpcs; others < r.least-r.earlier || others > r.most {
				errs = append(errs, fmt.Errorf("%v keeps room for %d health checks and reports on a connection of %s, want %d to %d",
					l.location, others, l.endpointSet, r.least, r.most))
			}
		}
		atLimit := rpcs+others >= r.limit
		if r.full && !atLimit || !r.full && atLimit && conns[l] == 1 {
			errs = append(errs, fmt.Errorf("%v has %d streams and up to %d others on a connection of %s, of %d, and is taken for full: %t",
				l.location, rpcs, others, l.endpointSet, r.limit, r.full))
		}
	}
	return errs
}

// reportsSent is how many reports there have been.
func (s *env) reportsSent() int64 {
	if s.fleet == nil {
		return 0
	}
	return s.fleet.reports.Load()
}

// checkReports says which servers do not tell each ledger that is to be told, once.
func (s *env) checkReports() error {
	want := map[string]map[string]bool{} // keys, by member
	for _, c := range s.channels {
		if c.spec.policy.Reports == nil {
			continue
		}
		for _, m := range c.members() {
			if want[m.name] == nil {
				want[m.name] = map[string]bool{}
			}
			want[m.name][c.spec.policy.ResourceKey] = true
		}
	}
	var errs []error
	for _, m := range s.fleet.members {
		if open := m.current().talk.open.Load(); open != int64(len(want[m.name])) {
			errs = append(errs, fmt.Errorf("%s has %d streams of reports, want %d", m.name, open, len(want[m.name])))
		}
	}
	return errors.Join(errs...)
}

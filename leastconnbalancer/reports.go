package leastconnbalancer

import (
	"sync"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/internal/reports"
	"github.com/leastconn/grpc-leastconn/state"
)

// connectionReports is a connection's part in its server's reports.
type connectionReports struct {
	// mu is held while a subscription begins and ends, which takes locks of gRPC, waits until
	// a report is taken up, and takes the balancer's mu. What takes up a report takes none but
	// the ledger's.
	mu           sync.Mutex
	wanted       reportsWanted
	subscription *reports.Subscription // nil without one
}

// reportsWanted is what a connection is to ask its server for. The zero reportsWanted is nothing.
type reportsWanted struct {
	interval time.Duration
	member   *state.Member // whose endpoint it is
}

// minStreams is the lowest limit of streams at which a server is asked for reports: they
// and health checks take a stream each for as long as the connection lives.
const minStreams = 3

// reportsWantedLocked says what the connection is to ask for: reports, while it is READY and the
// child's.
func (cn *connection) reportsWantedLocked() (w reportsWanted) {
	c := cn.child
	interval := c.parent.load.reports
	if interval == 0 || c.current != cn || c.member == nil || !cn.transport.allows(minStreams) {
		return w
	}
	return reportsWanted{interval, c.member}
}

// updateReports subscribes the connection to what it is to ask for now, and to nothing else. It
// is called after any change of that, without the balancer's mu.
func (cn *connection) updateReports() {
	r := &cn.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	mu := &cn.child.parent.mu
	mu.Lock()
	want := cn.reportsWantedLocked()
	mu.Unlock()
	if want == r.wanted {
		return
	}
	if r.subscription != nil {
		r.subscription.Cancel()
	}
	r.subscription, r.wanted = nil, want
	if want.member == nil {
		return
	}
	if id := want.member.EndpointID(); id != (state.EndpointID{}) { // else it has just left
		r.subscription = reports.Subscribe(id, cn, want.interval, want.member.Report)
	}
}

// updateReports does so for the children's connections, once the configuration is another one.
func (b *leastConn) updateReports() {
	var all []*connection
	b.mu.Lock()
	for _, c := range b.children.byKey {
		if c.current != nil {
			all = append(all, c.current)
		}
	}
	b.mu.Unlock()
	for _, cn := range all {
		cn.updateReports()
	}
}

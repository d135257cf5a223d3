package dns

import (
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/resolver"
)

// conn is a channel that notes what a resolver tells it. What it embeds is not
// there: a resolver calls nothing else.
type recordingConn struct {
	resolver.ClientConn
	refuse func(resolver.State) error // nil refuses nothing
	hold   chan struct{}              // if there is one, UpdateState waits for it

	mu     sync.Mutex
	events []event
}

// event is a list, its addresses in one string, or an error.
type event struct {
	at   time.Time
	list string
	err  error
}

func (c *recordingConn) UpdateState(s resolver.State) error {
	if c.hold != nil {
		<-c.hold
	}
	var list []string
	for _, ep := range s.Endpoints {
		var addrs []string
		for _, a := range ep.Addresses {
			addrs = append(addrs, a.Addr)
		}
		list = append(list, strings.Join(addrs, "+"))
	}
	c.add(event{at: time.Now(), list: strings.Join(list, " ")})
	if c.refuse != nil {
		return c.refuse(s)
	}
	return nil
}

func (c *recordingConn) ReportError(err error) { c.add(event{at: time.Now(), err: err}) }

func (c *recordingConn) add(e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
}

// take returns the events since the last call, lists as they are and errors
// after "error: ".
func (c *recordingConn) takeEvents() (events []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		if e.err != nil {
			events = append(events, "error: "+e.err.Error())
		} else {
			events = append(events, e.list)
		}
	}
	c.events = nil
	return events
}

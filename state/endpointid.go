package state

import "weak"

// EndpointID tells an endpoint from all others of the process. Members that share their
// endpoint's counts have the same one, and only they. It keeps nothing alive.
type EndpointID struct{ endpoint weak.Pointer[endpoint] }

// EndpointID returns the id of m's endpoint, the zero EndpointID once m has left. It does not
// change before.
func (m *Member) EndpointID() EndpointID {
	mu := m.set.ledger.mu
	mu.Lock()
	defer mu.Unlock()
	return EndpointID{weak.Make(m.endpoint)}
}

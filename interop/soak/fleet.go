package main

import (
	"sync"
	"sync/atomic"
)

// fleet is the servers of a run.
type fleet struct {
	members []*member

	mu     sync.Mutex
	owners map[string]owner // by every address that a server has had
}

// owner is whose an address is, or was: a server, by its name, in a member's place.
type owner struct{ member, server string }

// member is a place in the fleet. Its server may be replaced by one with other addresses.
type member struct {
	fleet  *fleet
	index  int
	name   string
	server atomic.Pointer[server]
}

// startFleet starts n servers; close it, also after an error.
func startFleet(n int) (*fleet, error) {
	f := &fleet{owners: map[string]owner{}}
	for i := range n {
		m := &member{fleet: f, index: i, name: nodeName(i)}
		if _, err := m.replace(); err != nil {
			return f, err
		}
		f.members = append(f.members, m)
	}
	return f, nil
}

// owner returns whose the address is, or was.
func (f *fleet) owner(addr string) owner {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.owners[addr]
}

// own gives all the addresses to an owner, or none if one of them has had another one.
func (f *fleet) own(o owner, addrs ...string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range addrs {
		if _, ok := f.owners[a]; ok {
			return false
		}
	}
	for _, a := range addrs {
		f.owners[a] = o
	}
	return true
}

// served is how many RPCs each member handles now.
func (f *fleet) served() map[string]int {
	live := map[string]int{}
	for _, m := range f.members {
		s := m.now()
		live[m.name] = s.plain.Live() + s.ageing.Live()
	}
	return live
}

// conns is how many connections the servers have open.
func (f *fleet) conns() int {
	open := 0
	for _, m := range f.members {
		s := m.now()
		open += s.plain.OpenConns() + s.ageing.OpenConns()
	}
	return open
}

func (f *fleet) close() {
	for _, m := range f.members {
		m.now().close()
	}
}

// now is the member's server.
func (m *member) now() *server { return m.server.Load() }

// replace gives the member a new server on addresses that none had before, and returns the old one, nil at first.
// Addresses are not used again, since the load of what an earlier owner left there would be the new one's.
func (m *member) replace() (old *server, err error) {
	for {
		s, err := startServer(m.name, m.index%3 == 2)
		if err != nil {
			return nil, err
		}
		if m.fleet.own(owner{m.name, s.name}, s.addr, s.direct) {
			return m.server.Swap(s), nil
		}
		defer s.close() // not before there is another one, which would get the same addresses
	}
}

package main

import (
	"fmt"
	"slices"
	"strings"
)

// distribution is which servers the RPCs of all cases went to.
type distribution struct {
	servers []server
	sent    []int // RPC attempts by server
	most    int   // of a case with one channel, one after another
}

func newDistribution(servers []server) *distribution {
	return &distribution{servers: servers, sent: make([]int, len(servers))}
}

// add adds what a case has sent, by address.
func (d *distribution) add(c testCase, sent map[string]int) {
	for i, s := range d.servers {
		for _, addr := range s.Addrs {
			d.sent[i] += sent[addr]
		}
	}
	if !c.channels {
		d.most = max(d.most, total(sent))
	}
}

func total(sent map[string]int) (sum int) {
	for _, n := range sent {
		sum += n
	}
	return sum
}

func (d *distribution) used() int {
	return len(d.sent) - len(slices.DeleteFunc(slices.Clone(d.sent), func(n int) bool { return n > 0 }))
}

// check returns an error if servers were left out: idle ones take turns, so RPCs over one channel use as many servers as
// there are RPCs, or all.
func (d *distribution) check() error {
	if want := min(d.most, len(d.servers)); d.used() < want {
		return fmt.Errorf("%d of %d servers were used, want %d after %d RPCs over one channel: %s", d.used(), len(d.servers), want, d.most, d)
	}
	return nil
}

func (d *distribution) String() string {
	by := make([]string, len(d.sent))
	for i, n := range d.sent {
		by[i] = fmt.Sprint(n)
	}
	return fmt.Sprintf("RPCs by server: %s", strings.Join(by, " "))
}

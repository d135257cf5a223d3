package main

import (
	"fmt"
	"slices"
	"strings"
)

// turns is which servers the RPCs of all cases went to.
type turns struct {
	servers []server
	sent    []int // RPC attempts by server
	most    int   // of a case with one channel, one after another
}

func newTurns(servers []server) *turns {
	return &turns{servers: servers, sent: make([]int, len(servers))}
}

// add adds what a case has sent, by address.
func (t *turns) add(c testCase, sent map[string]int) {
	for i, s := range t.servers {
		for _, addr := range s.Addrs {
			t.sent[i] += sent[addr]
		}
	}
	if !c.channels {
		t.most = max(t.most, total(sent))
	}
}

func total(sent map[string]int) (sum int) {
	for _, n := range sent {
		sum += n
	}
	return sum
}

func (t *turns) used() int {
	return len(t.sent) - len(slices.DeleteFunc(slices.Clone(t.sent), func(n int) bool { return n > 0 }))
}

// check returns an error if servers were left out: idle ones take turns, so RPCs over one channel use as many servers as
// there are RPCs, or all.
func (t *turns) check() error {
	if want := min(t.most, len(t.servers)); t.used() < want {
		return fmt.Errorf("%d of %d servers were used, want %d after %d RPCs over one channel: %s", t.used(), len(t.servers), want, t.most, t)
	}
	return nil
}

func (t *turns) String() string {
	by := make([]string, len(t.sent))
	for i, n := range t.sent {
		by[i] = fmt.Sprint(n)
	}
	return fmt.Sprintf("RPCs by server: %s", strings.Join(by, " "))
}
